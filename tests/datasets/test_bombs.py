"""Small files that would be large in memory, and damaged ones: refused in two lines and in little memory."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oodbench.errors import InvalidSetting, UnusableData
from oodbench.plugin.files import Sources, Transfer
from oodbench_datasets.acs import archive
from oodbench_datasets.acs.files import CensusFiles
from oodbench_datasets.table import size
from oodbench_datasets.table.read import open_table
from oodbench_datasets.table.settings import TableSettings

Make = Callable[..., Any]

PLAIN = TableSettings().reading

# a process of its own in between, for one that this large one starts would begin with its peak
MEASURE = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([done.returncode, done.stdout, done.stderr, peak]))
"""


def measured(*arguments: str, cwd: Path) -> tuple[int, str, str, int]:
    """A command as a user gives it: exit code, outputs, and the most memory that it took, in bytes."""
    command = [sys.executable, "-c", MEASURE, sys.executable, "-m", "oodbench", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd, timeout=120)
    code, out, err, peak = json.loads(done.stdout)
    return code, out, err, peak


def packed(text: bytes, name: str = "psam_p25.csv", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method, compresslevel=1) as file:
        file.writestr(name, text)
    return buffer.getvalue()


def refused(folder: Path) -> str:
    with pytest.raises(UnusableData) as caught:
        CensusFiles().fetch({}, Sources(folder=folder), Transfer())
    assert CensusFiles().inventory() == []
    assert len(str(caught.value).splitlines()) == 2
    return str(caught.value)


def test_an_endless_line_is_refused_in_little_memory(data_dir: Path, tmp_path: Path) -> None:
    bomb = packed(bytes(300_000_000))
    assert len(bomb) < 2_000_000
    (tmp_path / "csv_pma.zip").write_bytes(bomb)
    code, _, err, peak = measured("data", "fetch", "acs_travel", "--from", ".", cwd=tmp_path)
    assert (code, len(err.splitlines())) == (2, 2), err
    assert "it has a line of more than 64 kB" in err
    assert peak < 200_000_000
    assert not [path for path in data_dir.rglob("*") if path.is_file() and path.name != "registry.lock"]


@pytest.mark.parametrize("kind", ["zip", "csv"])
def test_an_endless_row_is_refused(made: Make, data_dir: Path, tmp_path: Path, kind: str) -> None:
    text = made("MA").text()
    for rows in (text, text.splitlines(True)[0]):
        endless = rows + b"1" * 3_000_000 + b"\n" + text
        content, name = (packed(endless), "csv_pma.zip") if kind == "zip" else (endless, "psam_p25.csv")
        (tmp_path / name).write_bytes(content)
        assert "it has a line of more than 64 kB" in refused(tmp_path)


def test_lines_are_counted_across_blocks(made: Make, data_dir: Path, tmp_path: Path) -> None:
    """With and without a newline at the end, and with lines as long as they may be."""
    text = made("MA", rows=50).text()
    for tail, more in ((b"", 0), (b"P," + b"1" * 60_000 + b"\n", 1), (b"1,2\n" * 700_000 + b"3", 700_001)):
        (tmp_path / "psam_p25.csv").write_bytes(text + tail)
        (holding,) = CensusFiles().fetch({}, Sources(folder=tmp_path, renew=True), Transfer())
        assert holding.facts["rows"] == 50 + more


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ("FILE_BYTES", "the zip file has [0-9,]+ bytes, more than"),
        ("TEXT_BYTES", "psam_p25.csv has [0-9,]+ bytes, more than"),
        ("TOTAL_BYTES", "with it the files have more than"),
        ("DIRECTORY_BYTES", "the zip file has more members than person files have"),
    ],
)
def test_what_is_larger_than_person_files_are(
    made: Make, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, reason: str
) -> None:
    (tmp_path / "csv_pma.zip").write_bytes(made("MA").zipped())
    monkeypatch.setattr(archive, bound, 50)
    with pytest.raises(UnusableData, match=reason):
        CensusFiles().fetch({}, Sources(folder=tmp_path), Transfer())
    monkeypatch.undo()
    monkeypatch.setenv("OODBENCH_DATA", str(data_dir))
    assert len(CensusFiles().fetch({}, Sources(folder=tmp_path), Transfer())) == 1


def test_a_zip_with_very_many_members(data_dir: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "csv_pma.zip", "w") as file:
        for number in range(66_000):  # so many need the larger kind of list
            file.writestr(zipfile.ZipInfo(f"{number}"), b"")
    assert "more members than person files have" in refused(tmp_path)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_damaged_members(made: Make, data_dir: Path, tmp_path: Path, cli: Callable[..., Any], method: int) -> None:
    content = bytearray(packed(made("MA").text(), method=method))
    content[200:260] = os.urandom(60)
    (tmp_path / "csv_pma.zip").write_bytes(content)
    done = cli("data", "fetch", "acs_travel", "--from", str(tmp_path))
    assert (done.code, len(done.err.splitlines())) == (2, 2), done.err
    assert "csv_pma.zip cannot be used: " in done.err
    others = {zipfile.ZIP_LZMA: "lzma", zipfile.ZIP_BZIP2: "bzip2"}
    expected = f"compressed with {others[method]}" if method in others else "not a complete zip file: "
    assert expected in done.err


def large_parquet(path: Path, rows: int) -> None:
    batch = pa.table({"target": pa.nulls(rows // 10), "place": pa.nulls(rows // 10)})
    with pq.ParquetWriter(path, batch.schema) as writer:
        for _ in range(10):
            writer.write_table(batch)


def test_a_parquet_of_many_rows_is_refused_by_its_metadata(tmp_path: Path) -> None:
    large_parquet(tmp_path / "large.parquet", 100_000_000)
    assert (tmp_path / "large.parquet").stat().st_size < 700_000
    settings = ("path=large.parquet", "target=target", "environment=place", "train=1")
    arguments = [word for setting in settings for word in ("--set", setting)]
    code, _, err, peak = measured("run", "--method", "erm", "--dataset", "table", *arguments, cwd=tmp_path)
    assert code == 2, err
    message = err.splitlines()[-2:]
    assert message[0] == "error: dataset 'table': large.parquet has 100,000,000 rows, more than 50,000,000."
    assert peak < 900_000_000  # nearly all of it torch


def test_a_text_that_stands_in_every_row(tmp_path: Path) -> None:
    """It is in the file once."""
    rows = 100_000
    codes = pa.array(np.zeros(rows, np.int32))
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"text": column, "y": np.arange(rows)}), tmp_path / "text.parquet")
    assert (tmp_path / "text.parquet").stat().st_size < 2_000_000
    with pytest.raises(InvalidSetting, match="text.parquet has more than 4 GB of values"):
        open_table(str(tmp_path / "text.parquet"), (), ("y",), PLAIN)
    assert len(open_table(str(tmp_path / "text.parquet"), ("text",), ("y",), PLAIN)) == rows


def test_compressed_text_and_many_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 1_000_000))
    monkeypatch.setattr(size, "MOST_BYTES", 3_000_000)
    with pytest.raises(InvalidSetting, match="rows.csv.gz has more than"):
        open_table(str(tmp_path / "rows.csv.gz"), (), (), PLAIN)
    names = ",".join(f"c{number}" for number in range(30_000))
    (tmp_path / "wide.csv").write_text(names + "\n" + ",".join("1" * 30_000) + "\n")
    with pytest.raises(InvalidSetting, match="wide.csv has 30,000 columns, more than 20,000"):
        open_table(str(tmp_path / "wide.csv"), (), (), PLAIN)
