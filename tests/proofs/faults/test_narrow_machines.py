"""Machines that are short of shared memory or open files, or whose clock is set back: a run ends in the same table."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import oodbench
from places import TESTS

TINY = {"majority": 200, "minority": 40, "test_rows": 50}
TRIALS, SEEDS, STEPS = 12, 2, 3000
RUN = [
    sys.executable, "-m", "oodbench", "run", "-m", "erm", "-d", "selection_bias", "--trials", str(TRIALS),
    "--seeds", str(SEEDS), "--set-training", f"steps={STEPS}", "--json", "--directory", "record",
    *(word for name, value in TINY.items() for word in ("--set", f"{name}={value}")),
]  # fmt: skip
Table = list[tuple[str, Any]]


@pytest.fixture(scope="module")
def expected(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The table of a run with enough of everything."""
    board = oodbench.run(
        "erm", "selection_bias", settings=TINY, trials=TRIALS, seeds=SEEDS, recipe={"steps": STEPS},
        directory=tmp_path_factory.mktemp("wide"),
    ).leaderboard()  # fmt: skip
    return numbers(board.as_dict())


def numbers(board: Mapping[str, Any]) -> Table:
    return [(row["method"], row["metrics"]) for row in board["rows"]]


@contextlib.contextmanager
def started(command: Sequence[str], folder: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """The command, in a session of its own, of which nothing is left in the end."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=(folder / "errors").open("w"), text=True,
        start_new_session=True, env={**os.environ, **environment},
    )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def check(process: subprocess.Popen[str], folder: Path, expected: Table, count_runs: Any) -> None:
    out, _ = process.communicate(timeout=600)
    err = (folder / "errors").read_text()
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert numbers(json.loads(out)[0]) == expected
    assert count_runs(folder / "record") == {
        ("study", "FINISHED", "active"): 1,
        ("configuration", "FINISHED", "active"): TRIALS,
    }


def test_little_shared_memory(expected: Table, tmp_path: Path, count_runs: Any) -> None:
    mount = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"', "sh"]
    try:
        possible = subprocess.run([*mount, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if possible.returncode:
        pytest.skip(f"cannot mount another /dev/shm here: {possible.stderr.strip()}")
    begun = time.monotonic()
    with started([*mount, *RUN], tmp_path) as process:
        check(process, tmp_path, expected, count_runs)
    print(f"/dev/shm of 64 MB: the same table in {time.monotonic() - begun:.0f} s")


def test_few_open_files(expected: Table, tmp_path: Path, count_runs: Any) -> None:
    begun = time.monotonic()
    with started(["sh", "-c", 'ulimit -n 256 && exec "$@"', "sh", *RUN], tmp_path) as process:
        check(process, tmp_path, expected, count_runs)
    print(f"256 open files: the same table in {time.monotonic() - begun:.0f} s")


def test_a_clock_that_is_set_back(expected: Table, tmp_path: Path, count_runs: Any) -> None:
    """By an hour, while packs train, for every process of the run.

    libfaketime also changes how processes sleep, and Ray does not start with it: a few lines of C take its place.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler for a clock that can be set back")
    library, flag, begun = tmp_path / "clock.so", tmp_path / "set-back", time.monotonic()
    source = TESTS / "support" / "clock.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    with started(RUN, tmp_path, LD_PRELOAD=str(library), CLOCK_SET_BACK=str(flag)) as process:
        while not any((tmp_path / "record").glob("studies/*/pack-*.pickle")):
            assert process.poll() is None, (tmp_path / "errors").read_text()
            assert time.monotonic() - begun < 300
            time.sleep(0.02)
        flag.touch()
        check(process, tmp_path, expected, count_runs)
    (study,) = oodbench.leaderboard("selection_bias", settings=TINY, directory=tmp_path / "record").studies
    made = study.record.provenance
    apart = (made.concluded - made.started).total_seconds()
    print(
        f"clock set back by an hour: the same table in {time.monotonic() - begun:.0f} s, concluded {apart:.0f} s after"
    )
    assert apart < 0  # it was set back indeed
