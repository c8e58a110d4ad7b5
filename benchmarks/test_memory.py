"""The memory of a run on long tables: workers stay within the plan, and the driver holds its table and little more."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import ray  # noqa: F401  # brings psutil
from pyarrow.parquet import ParquetWriter

SIZES = {"erm": (1_000_000, 20_000_000), "hist_gb": (1_000_000, 4_000_000)}
COLUMNS = 12
BLOCK = 250_000
DRIVER_BYTES = 700_000_000  # Python, Ray, MLflow, pandas and arrow
TABLE_COPIES = 2.5  # in the driver, of the table in double precision: as arrow reads it, its columns, and parts of both
OODBENCH = (sys.executable, "-m", "oodbench")


@dataclass
class Peaks:
    """Bytes, at most. Anonymous memory is what the system cannot take back: neither files nor shared rows."""

    driver: int = 0  # anonymous
    worker: int = 0  # anonymous
    whole_worker: int = 0  # with the rows that it shares


@pytest.mark.parametrize("method", list(SIZES))
def test_a_long_table(method: str, tmp_path: Path, report: Callable[[str], None]) -> None:
    report(f"{method}: rows; table, driver and worker (both anonymous), whole worker, predicted")
    for rows in SIZES[method]:
        folder = tmp_path / f"{rows}"
        folder.mkdir()
        write_table(folder / "long.parquet", rows)
        command = ["run", "-m", method, "-d", "table", "--trials", "2", "--seeds", "1", "--no-stability"]
        for setting in ("path=long.parquet", "target=y", "positive=true", "environment=place", "train=0,1"):
            command += ["--set", setting]
        said = subprocess.check_output([*OODBENCH, *command, "--dry-run", "--json"], cwd=folder, text=True)
        predicted, peaks, table = json.loads(said)["memory"]["worker"], watch(command, folder), 8 * rows * COLUMNS
        figures = (table, peaks.driver, peaks.worker, peaks.whole_worker, predicted)
        report(f"{rows:>10,} " + " ".join(f"{figure / 1e6:>7,.0f} MB" for figure in figures))
        assert peaks.whole_worker <= predicted
        assert peaks.driver <= DRIVER_BYTES + TABLE_COPIES * table


def write_table(path: Path, rows: int) -> None:
    with contextlib.ExitStack() as stack:
        writer = None
        for start in range(0, rows, BLOCK):
            random = np.random.default_rng(start)
            x = random.normal(size=(BLOCK, COLUMNS))
            columns: dict[str, Any] = {f"x{number}": column for number, column in enumerate(x.T)}
            columns |= {"y": x[:, 0] + random.normal(size=BLOCK) > 0, "place": random.integers(0, 4, BLOCK)}
            table = pa.table(columns)
            writer = writer or stack.enter_context(ParquetWriter(path, table.schema))
            writer.write_table(table)


def watch(command: list[str], folder: Path) -> Peaks:
    """A run in a process of its own, seen from outside."""
    import psutil  # type: ignore[import-untyped]  # comes with ray

    peaks = Peaks()
    with (folder / "log").open("w") as log:
        driver = subprocess.Popen([*OODBENCH, *command], cwd=folder, stdout=log, stderr=log)
        while driver.poll() is None:
            with contextlib.suppress(psutil.Error, OSError):
                process = psutil.Process(driver.pid)
                peaks.driver = max(peaks.driver, status_of(driver.pid).get("RssAnon", 0))
                for child in process.children(recursive=True):
                    with contextlib.suppress(psutil.Error, OSError):
                        if child.cmdline()[:1] and child.cmdline()[0].startswith("ray::"):
                            seen = status_of(child.pid)
                            peaks.worker = max(peaks.worker, seen.get("RssAnon", 0))
                            peaks.whole_worker = max(peaks.whole_worker, seen.get("VmHWM", 0))
            time.sleep(0.05)
    assert driver.returncode == 0, (folder / "log").read_text()[-2000:]
    return peaks


def status_of(pid: int) -> dict[str, int]:
    lines = [line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return {words[0][:-1]: 1024 * int(words[1]) for words in lines if words[0] in ("RssAnon:", "VmHWM:")}
