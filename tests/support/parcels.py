"""Concluded studies in an outbox, and drivers that are killed while they make the record for them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from oodbench.record.outbox import Outbox
from oodbench.record.parcel import Parcel
from oodbench.study.outcome import Outcome
from oodbench.study.record import COLUMNS
from studies import made_up

PARTS = ("train", "validation", "test")


def outcome(label: str, error: float = 1.0, **changes: Any) -> Outcome:
    rows = [(0, seed, part, name, error + seed / 10) for seed in (0, 1) for part in PARTS for name in ("a", "b")]
    results = pd.DataFrame(rows, columns=["configuration", "seed", "part", "environment", "error"])
    results = results.assign(rows=9, loss=0.1, chosen=True).reindex(columns=list(COLUMNS))
    results = results.astype({name: float for name, kind in COLUMNS.items() if kind == "f"})
    where: dict[str, Any] = {"dataset": "selection_bias", "dataset_id": "selection_bias", "study_id": label}
    return Outcome(made_up(label, results, trials=1, seeds=2, **(where | changes)).record, results)


def put(directory: Path, *labels: str) -> list[Parcel]:
    return [Outbox(directory).put(outcome(label), "", fresh=False) for label in labels]


WITH_ANOTHER_MLFLOW = """
import runpy, sys
from oodbench.record import database
database._headline = lambda: "another version"
sys.argv[0] = "oodbench"
runpy.run_module("oodbench", run_name="__main__")
"""  # as with an MLflow that mlflow.sql is not for: the database is made by migrations, which takes longest


def kill_in_creation(directory: Path, size: int) -> int:
    """`oodbench sync`, killed with -9 when the database that it makes has so many bytes; how many it then had."""
    driver = subprocess.Popen([sys.executable, "-c", WITH_ANOTHER_MLFLOW, "sync", "--directory", str(directory)])
    deadline = time.monotonic() + 120
    while database_size(directory) < size:
        assert driver.poll() is None, "it ended before"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL
    return database_size(directory)


def database_size(directory: Path) -> int:
    """In its place or not."""
    sizes = [0]
    for path in directory.glob("mlflow.db*"):
        with contextlib.suppress(FileNotFoundError):
            sizes.append(path.stat().st_size if not path.name.endswith("-journal") else 0)
    return max(sizes)
