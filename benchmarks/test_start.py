"""How long a user waits: for the help, and for a whole study from a cold start."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture


def seconds(*command: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    return time.perf_counter() - started


@pytest.mark.parametrize("command", ["--help", "list"])
def test_light_commands_take_less_than_half_of_importing_torch(
    benchmark: BenchmarkFixture, report: Callable[[str], None], command: str
) -> None:
    torch = statistics.median(seconds("-c", "import torch") for _ in range(3))
    benchmark.pedantic(seconds, args=("-m", "oodbench", command), rounds=5, warmup_rounds=1)
    ours = benchmark.stats.stats.median
    report(f"oodbench {command}: {ours:.2f} s, import torch {torch:.2f} s, share {ours / torch:.2f} (at most 0.50)")
    assert ours < torch / 2


def test_a_study_from_a_cold_start(report: Callable[[str], None], tmp_path: Path) -> None:
    """20 trials x 10 seeds of erm on selection_bias, Ray and MLflow included."""
    command = [sys.executable, "-m", "oodbench", "run", "--method", "erm", "--dataset", "selection_bias"]
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    marks = [(time.perf_counter() - started, line.strip()) for line in process.stderr]
    assert process.wait() == 0
    total = time.perf_counter() - started
    stations = {
        "imports and data": next(at for at, line in marks if line.startswith("starting Ray")),
        "Ray started, first packs trained": next(at for at, line in marks if " of 200 trainings" in line),
        "all packs trained": next(at for at, line in marks if line.startswith("200 of 200")),
        "selected, evaluated, recorded, Ray stopped, shown": total,
    }
    before = 0.0
    for name, at in stations.items():
        report(f"{at - before:5.1f} s  {name}")
        before = at
    report(f"{total:5.1f} s  in all (at most 15 s)")
    assert total <= 15
