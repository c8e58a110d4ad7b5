"""A thousand configurations on ten seeds: what the driver needs, and how much of the time the record takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CONFIGURATIONS, SEEDS = 1000, 10
RUN = [sys.executable, "-m", "oodbench", "run", "-m", "erm", "-d", "selection_bias", "--seeds", str(SEEDS), "--json"]


def watch(folder: Path, trials: int) -> tuple[float, float, float]:
    """Run a study: the seconds it takes, those of them between its conclusion and its record, and the driver's most
    memory in MB."""
    folder.mkdir()
    started = time.monotonic()
    with (folder / "out").open("w") as out, (folder / "log").open("w") as log:
        driver = subprocess.Popen([*RUN, "--trials", str(trials)], cwd=folder, stdout=out, stderr=log)
        memory, concluded, recorded = 0, 0.0, 0.0
        while driver.poll() is None:
            waiting = any((folder / ".oodbench").glob("outbox/*/parcel.json"))
            if waiting and not concluded:
                concluded = time.monotonic()
            if concluded and not waiting and not recorded:
                recorded = time.monotonic()
            memory = max(memory, _memory(driver.pid))
            time.sleep(0.02)
    assert driver.returncode == 0, (folder / "log").read_text()
    return time.monotonic() - started, recorded - concluded, memory / 1e3


def _memory(pid: int) -> int:
    """The most that the process had in memory so far, in kB."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # just ended
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


@pytest.mark.skipif(not Path("/proc").exists(), reason="reads the memory of a process from /proc")
def test_a_thousand_configurations(tmp_path: Path, count_runs: Callable[..., Any]) -> None:
    _, _, before = watch(tmp_path / "small", 20)
    total, recording, memory = watch(tmp_path / "large", CONFIGURATIONS)
    trainings = CONFIGURATIONS * SEEDS
    print(
        f"\n{trainings:,} trainings in {total:.0f} s; {CONFIGURATIONS + 1} runs recorded in {recording:.1f} s, "
        f"{(CONFIGURATIONS + 1) / recording:.0f} a second, {recording / total:.0%} of the time (at most 20 %)\n"
        f"the driver took {memory:.0f} MB at most; for 200 trainings {before:.0f} MB"
    )
    (board,) = json.loads((tmp_path / "large" / "out").read_text())
    assert (board["rows"][0]["trials"], board["rows"][0]["failed_trainings"]) == (CONFIGURATIONS, 0)
    assert count_runs(tmp_path / "large" / ".oodbench") == {
        ("study", "FINISHED", "active"): 1,
        ("configuration", "FINISHED", "active"): CONFIGURATIONS,
    }
    assert recording < 0.2 * total
    assert memory - before < 0.03 * trainings  # MB: what a training leaves in the driver is its scores, not its model
