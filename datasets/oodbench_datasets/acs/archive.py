"""The CSV text of a person file, plain or in its zip, and what of it is refused before it can fill memory or disk.

A kilobyte of zip can hold a gigabyte of text. Whatever is declared is looked at first, and lines are counted in blocks.
"""

from __future__ import annotations

import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from oodbench.plugin.reading import open_regular
from oodbench_datasets.acs.census import CODES, PersonFile

# far above all that is published: California's five years are 0.3 GB of zip and 2 GB of text, in lines of 1 kB
LINE_BYTES = 64 << 10
FILE_BYTES = 2 << 30  # of a zip
TEXT_BYTES = 8 << 30  # of a person file
TOTAL_BYTES = 64 << 30  # of text in one fetch
DIRECTORY_BYTES = 1 << 20  # of a zip's list of members, which is read whole

BLOCK = 1 << 20
END, END64, END_SIZE, LONGEST_COMMENT = b"PK\x05\x06", b"PK\x06\x07", 22, 1 << 16
COMPRESSIONS = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "lzma"}  # that are not read
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)


class Refused(ValueError):
    """The file is larger than person files are, or packed in another way."""


class Allowance:
    """How many bytes of text the files of one fetch may still have; its threads share it."""

    def __init__(self) -> None:
        self.left = TOTAL_BYTES
        self.lock = threading.Lock()

    def spend(self, size: int) -> None:
        with self.lock:
            self.left -= size
            if self.left < 0:
                raise Refused(f"with it the files have more than {TOTAL_BYTES >> 30} GB of text")


@contextmanager
def opened(path: Path, file: PersonFile) -> Iterator[IO[bytes]]:
    """The CSV text of a person file: the file itself, or its member of the zip."""
    with open_regular(path) as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        check_file_size(path, size)
        if path.suffix != ".zip":
            yield stream
            return
        _check_directory(stream, size)
        with zipfile.ZipFile(stream) as archive, archive.open(_member(archive, file)) as member:
            yield member


def check_file_size(path: Path, size: int) -> None:
    if path.suffix == ".zip":
        _check_size(size, FILE_BYTES, "the zip file")
    else:
        _check_size(size, TEXT_BYTES, "the file")


def read_header(text: IO[bytes]) -> list[str]:
    """The names of the columns, as they are spelled."""
    line = _line(text).decode("utf-8-sig", "replace").strip()
    return [name.strip(' "') for name in line.split(",")]


def count_rows(path: Path, file: PersonFile, allowance: Allowance) -> int:
    """Read a whole person file and count its persons; ValueError says why it cannot be used."""
    try:
        with opened(path, file) as text:
            header = [name.upper() for name in read_header(text)]
            if "AGEP" not in header:
                raise ValueError(f"it is not a PUMS person file: its first line is {','.join(header)[:60]!r}")
            first = _line(text)
            rows = int(bool(first.strip())) + _count_lines(text, allowance)
    except DAMAGED as error:
        raise ValueError(f"it is not a complete zip file{_looks_like_a_page(path)}: {error}") from None
    if not rows:
        raise ValueError("it has no rows")
    _check_state(header, first, file)
    return rows


def _count_lines(text: IO[bytes], allowance: Allowance) -> int:
    """Lines that end in a newline, and the last one if it does not."""
    lines, unfinished = 0, 0  # bytes since the last newline
    while block := text.read(BLOCK):
        allowance.spend(len(block))
        lines += block.count(b"\n")
        start = -unfinished
        while len(block) - start > LINE_BYTES:  # in that many bytes there must be a newline
            newline = block.rfind(b"\n", max(start, 0), start + LINE_BYTES)
            if newline < 0:
                raise _endless()
            start = newline + 1
        newline = block.rfind(b"\n")
        unfinished = len(block) - (newline + 1 if newline >= 0 else start)
    return lines + (unfinished > 0)


def _line(text: IO[bytes]) -> bytes:
    line = text.readline(LINE_BYTES + 1)
    if len(line) > LINE_BYTES:
        raise _endless()
    return line


def _endless() -> Refused:
    return Refused(f"it has a line of more than {LINE_BYTES >> 10} kB")


def _check_size(size: int, most: int, what: str) -> None:
    if size > most:
        raise Refused(f"{what} has {size:,} bytes, more than {most >> 30} GB")


def _check_directory(stream: IO[bytes], size: int) -> None:
    """Before zipfile reads the list of members: millions of them would fill the memory."""
    stream.seek(max(0, size - END_SIZE - LONGEST_COMMENT - 20))
    tail = stream.read()
    stream.seek(0)
    plain = tail[-END_SIZE:].startswith(END) and tail.endswith(b"\0\0")  # without a comment, as zipfile looks for it
    end = len(tail) - END_SIZE if plain else tail.rfind(END)
    if end < 0:
        return  # zipfile says so
    if END64 in tail or int.from_bytes(tail[end + 12 : end + 16], "little") > DIRECTORY_BYTES:
        raise Refused("the zip file has more members than person files have")


def _member(archive: zipfile.ZipFile, file: PersonFile) -> zipfile.ZipInfo:
    members = {member.filename.lower(): member for member in archive.infolist()}
    if file.csv_name not in members:
        raise Refused(f"it contains no {file.csv_name}, only {', '.join(members)[:200] or 'nothing'}")
    member = members[file.csv_name]
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # others decompress with as much memory as the file asks for, and the Census Bureau uses none of them
        name = COMPRESSIONS.get(member.compress_type, f"method {member.compress_type}")
        raise Refused(f"{member.filename} is compressed with {name}, and only deflate can be read")
    _check_size(member.file_size, TEXT_BYTES, member.filename)  # zipfile reads no more than is declared
    return member


def _looks_like_a_page(path: Path) -> str:
    with path.open("rb") as stream:
        start = stream.read(200).lstrip().lower()
    return " but a web page" if start.startswith((b"<!doctype", b"<html", b"<?xml")) else ""


def _check_state(header: list[str], first: bytes, file: PersonFile) -> None:
    values = dict(zip(header, first.decode("utf-8", "replace").strip().split(","), strict=False))
    state = values.get("ST", values.get("STATE", "")).strip(' "')
    if state.isdecimal() and int(state) != CODES[file.state]:
        raise ValueError(f"its rows are from state {state}, not {CODES[file.state]:02} ({file.state})")
