"""The file of a submission: a plain zip, written the same from the same contents, and read within bounds.

Nothing in it can run code when it is read. A kilobyte of zip can hold a gigabyte: what is declared is looked at first.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from oodbench.plugin.files import replacing
from oodbench.plugin.reading import read_bounded
from oodbench.study.document import Damaged
from oodbench.study.record import RESULTS_FILE, STUDY_FILE

MANIFEST = "manifest.json"
NAME = re.compile(rf"{re.escape(MANIFEST)}|board_[a-z]+\.csv|studies/[\w-]{{1,64}}/({STUDY_FILE}|{RESULTS_FILE})")
FILE_BYTES = 256 << 20  # of a submission; a study of 20 configurations on 10 seeds has about 20 kB
MEMBER_BYTES = 64 << 20
TOTAL_BYTES = 1 << 30  # of all members
DIRECTORY_BYTES = 4 << 20  # of the list of members, which zipfile reads whole: about 40,000
END, END64, END_SIZE, LONGEST_COMMENT = b"PK\x05\x06", b"PK\x06\x07", 22, 1 << 16
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OverflowError, struct.error)
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first that a zip can say


def write_members(path: Path, members: Mapping[str, bytes]) -> None:
    """All of it or nothing."""
    with replacing(path) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                member = zipfile.ZipInfo(name, EPOCH)
                member.external_attr = 0o644 << 16
                archive.writestr(member, content, zipfile.ZIP_DEFLATED)
        temporary.chmod(0o644)


def read_members(path: Path) -> dict[str, bytes]:
    """The members by their names. Raises OSError, or `Damaged` with what is wrong."""
    content = read_bounded(path, FILE_BYTES)
    _check_directory(content)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check_declared(members)
            return {member.filename: _read_declared(archive, member) for member in members}
    except Damaged:
        raise
    except DAMAGED:
        raise Damaged("it is not a whole zip file") from None


def _read_declared(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """`ZipFile.read` would unpack all that there is, and then cut it to what is declared."""
    with archive.open(member) as file:
        return file.read(member.file_size)


def _check_directory(content: bytes) -> None:
    """Before zipfile reads the list of members: millions of them would fill the memory."""
    tail = content[-(END_SIZE + LONGEST_COMMENT + 20) :]
    plain = tail[-END_SIZE:].startswith(END) and tail.endswith(b"\0\0")  # without a comment, as zipfile looks for it
    end = len(tail) - END_SIZE if plain else tail.rfind(END)
    if end < 0:
        raise Damaged("it is not a zip file")
    if END64 in tail or int.from_bytes(tail[end + 12 : end + 16], "little") > DIRECTORY_BYTES:
        raise Damaged("it has more members than a submission")


def _check_declared(members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    for member in members:
        name = member.filename[:80]
        if not NAME.fullmatch(member.filename):
            raise Damaged(f"it has a member {name!r}, which no submission has")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
            raise Damaged(f"{name} is encrypted, or packed in another way than deflate")
        if member.file_size > MEMBER_BYTES:
            raise Damaged(f"{name} is larger than {MEMBER_BYTES >> 20} MB")
    if len(set(names)) < len(names):
        raise Damaged("it has a member twice")
    if sum(member.file_size for member in members) > TOTAL_BYTES:
        raise Damaged(f"its members together are larger than {TOTAL_BYTES >> 30} GB")
