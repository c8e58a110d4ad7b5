"""Files that somebody else made: whatever they hold, they are refused in two lines, before they can fill the memory."""

from __future__ import annotations

import io
import json
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oodbench.errors import UserError
from oodbench.study.document import Damaged
from oodbench.submission import archive
from oodbench.submission.submission import read_submission
from oodbench.submission.table import check_table

RESULTS = "studies/0a1b/results.parquet"


def a_zip(**options: object) -> Callable[..., bytes]:
    def make(*members: tuple[str, bytes]) -> bytes:
        content = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(content, "w", **options) as file:  # type: ignore[call-overload]
            warnings.simplefilter("ignore")  # of names that are there twice
            for name, text in members:
                file.writestr(name, text)
        return content.getvalue()

    return make


plain, packed, lzma = a_zip(), a_zip(compression=zipfile.ZIP_DEFLATED), a_zip(compression=zipfile.ZIP_LZMA)
WHOLE = plain(("manifest.json", b"{}"))


def declared(size: int, text: bytes = b"x") -> bytes:
    """A member that says it has so many bytes, in the list of members."""
    content = packed((RESULTS, text))
    start = content.rindex(b"PK\x01\x02")
    return content[: start + 24] + size.to_bytes(4, "little") + content[start + 28 :]


REFUSED = {
    "empty": (b"", "it is not a zip file"),
    "header only": (b"PK\x03\x04" + bytes(500), "it is not a zip file"),
    "end cut off": (WHOLE[:-30], "it is not a zip file"),
    "a byte changed": (WHOLE[:30] + b"?" + WHOLE[31:], "it is not a whole zip file"),
    "more members": (WHOLE + b"PK\x06\x07" + bytes(40), "it has more members than a submission"),
    "a path outside": (plain(("../../.bashrc", b"x")), "it has a member '../../.bashrc', which no submission has"),
    "dots in a path": (plain(("studies/../study.json", b"x")), "which no submission has"),
    "a pickle": (plain(("model.pickle", b"x")), "which no submission has"),
    "a member twice": (plain(("manifest.json", b"x"), ("manifest.json", b"x")), "it has a member twice"),
    "more than declared": (declared(1, b"x" * 1000), "it is not a whole zip file"),
    "lzma": (lzma((RESULTS, b"x")), "is encrypted, or packed in another way than deflate"),
    "too large": (declared(archive.MEMBER_BYTES + 1), f"{RESULTS} is larger than 64 MB"),
    "no manifest": (plain((RESULTS, b"x")), "it has no manifest.json"),
    "no schema number": (WHOLE, "manifest.json: it has no schema number"),
    "not JSON": (plain(("manifest.json", b"[" * 100_000)), "manifest.json: it is not JSON"),
    "lines in a name": (plain(("manifest.json", b'{"schema": 1, "files": {"a\\n\\nb": 1}}')), "files.a b: input"),
    "a field missing": (plain(("manifest.json", b'{"schema": 1}')), "manifest.json: files: field required"),
}  # fmt: skip


# named, since an archive holds the time at which it was made, and xdist's processes must agree on names
@pytest.mark.parametrize(("content", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_submission_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "theirs.zip"
    path.write_bytes(content)
    with pytest.raises(UserError, match="is not as `oodbench submit` wrote it") as refused:
        read_submission(path)
    assert reason in str(refused.value)
    assert len(str(refused.value).splitlines()) == 2


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It declares a byte, and has 10 million."""
    monkeypatch.setattr(archive, "FILE_BYTES", 1 << 20)
    path = tmp_path / "bomb.zip"
    path.write_bytes(declared(1, bytes(10_000_000)))
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="it is not a whole zip file"):
            read_submission(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_another_schema_and_no_file_at_all(tmp_path: Path) -> None:
    path = tmp_path / "later.zip"
    path.write_bytes(plain(("manifest.json", json.dumps({"schema": 9}).encode())))
    with pytest.raises(UserError, match="another version of oodbench: manifest.json: it has schema 9"):
        read_submission(path)
    for place in (tmp_path, tmp_path / "nothing.zip", Path("/dev/zero")):
        with pytest.raises(UserError, match="cannot be read"):
            read_submission(place)


def table(columns: dict[str, pa.Array], **options: object) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content, **options)
    return content.getvalue()


def with_fewer_rows(content: bytes) -> bytes:
    """2,001 rows of which the file says that they are one; those of its parts stay."""
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    forged = content[:footer] + content[footer:].replace(b"\x16\xa2\x1f", b"\x16\x82\x00", 1)  # twice the number
    assert pq.ParquetFile(io.BytesIO(forged)).metadata.num_rows == 1
    return forged


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PAR1", "it is not Parquet"),
        (table({"error": pa.nulls(2001, pa.float64())}), "more rows or columns"),
        (with_fewer_rows(table({"error": pa.nulls(2001, pa.float64())})), "more rows or columns"),
        (table({f"c{number}": pa.array([1.0]) for number in range(501)}), "more rows or columns"),
        (table({"error": pa.array([1.0])}, compression="zstd"), "packed in another way"),
        (table({"error": pa.array([[1.0]])}), "of another type than results have"),
        (table({"error": pa.array([b"x"])}), "of another type than results have"),
        (table({"part": pa.array(["x" * 100] * 1000)}), "its texts are longer than those of results"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_tables_that_would_fill_the_memory(content: bytes, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound, value in (("MOST_VALUES", 2000), ("MOST_TEXT", 99_999)):
        monkeypatch.setattr(f"oodbench.submission.table.{bound}", value)
    check_table(table({"part": pa.array(["x"] * 1000), "error": pa.array([1.0] * 1000)}))
    with pytest.raises(Damaged, match=reason):
        check_table(content)
