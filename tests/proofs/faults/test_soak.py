"""200 small studies from four drivers in one embedded record; the drivers are killed again and again.

Three of them share a Ray cluster, one has its own, whose processes must not outlive it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warm import WarmProcess, WarmProcesses

DRIVERS, STUDIES, KILLS = 4, 50, 6  # studies and kills of each driver
SUITE = """title = "Soak"
trials = 1
seeds = 1
methods = ["erm"]

[[boards]]
name = "soak"
dataset = "selection_bias"
settings = {{ r1 = {values}, majority = 60, minority = 20, test_rows = 20 }}

[modes.short]
[modes.short.methods.erm]
recipe = {{ steps = 20 }}
"""


@dataclass
class Soaked:
    """A driver that is started until it comes to its end."""

    number: int
    signals: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    seconds: float = 0.0


def test_nothing_is_lost_doubled_or_left_over(
    ray_address: str, migrated: Path, tmp_path: Path, count_runs: Any
) -> None:
    record, mark, began = tmp_path / "record", f"soak-{uuid.uuid4().hex}", time.monotonic()

    def drive(number: int) -> Soaked:
        draw, soaked = random.Random(number), Soaked(number)
        values = [round(1.1 + 0.01 * (number + DRIVERS * study), 2) for study in range(STUDIES)]
        (tmp_path / f"soak{number}.toml").write_text(SUITE.format(values=values))
        arguments = ["run", "--suite", f"./soak{number}.toml", "--json", "--directory", str(record)]
        arguments += ["--address", ray_address] if number else []
        while True:
            process = warm[number].start("oodbench", arguments, tmp_path, {**os.environ, "OODBENCH_SOAK": mark})
            soaked.starts += 1
            done = None
            if soaked.signals.total() < KILLS:
                done = end_before_kill(process, record, draw)
                if done is None:
                    name = draw.choice(("SIGKILL", "SIGTERM"))
                    os.kill(process.pid, getattr(signal, name))
                    killed = process.wait(120)
                    assert "Traceback" not in killed.stderr, killed.stderr
                    soaked.signals[name] += 1
                    continue
            done = done or process.wait(900)
            assert done.returncode == 0, done.stderr
            soaked.seconds = time.monotonic() - began
            return soaked

    # forks of one process draw the same random names, and on one Ray they would take each other's objects
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(DRIVERS) as threads:
        warm = [WarmProcesses(migrated) for _ in range(DRIVERS)]
        for processes in warm:
            stack.callback(processes.stop)
        soaked = list(threads.map(drive, range(DRIVERS)))
    for driver in soaked:
        print(f"driver {driver.number}: {driver.starts} starts, {dict(driver.signals)}, {driver.seconds:.0f} s")
    runs, studies = count_runs(record), recorded(record)
    orphans = left_over(mark)
    waiting = [path for part in ("studies", "outbox", "damaged") for path in record.glob(f"{part}/*")]
    kills = sum((driver.signals for driver in soaked), Counter[str]())
    print(
        f"{len(studies)} of {DRIVERS * STUDIES} studies after {sum(kills.values())} kills {dict(kills)}, "
        f"{sum(number > 1 for number in studies.values())} doubled, {dict(runs)}, {len(orphans)} orphans"
    )
    assert len(studies) == DRIVERS * STUDIES
    assert set(studies.values()) == {1}
    alive = {key: number for key, number in runs.items() if key[2] == "active"}
    assert alive == {
        ("study", "FINISHED", "active"): DRIVERS * STUDIES,
        ("configuration", "FINISHED", "active"): DRIVERS * STUDIES,
    }
    assert not [key for key in runs if key[1] == "RUNNING"]
    assert waiting == []
    assert orphans == []


def end_before_kill(process: WarmProcess, record: Path, draw: random.Random) -> subprocess.CompletedProcess[str] | None:
    """Its end, or None when it is to be killed: during its start, or after some more studies came into the record."""
    early = draw.random() < 0.3
    studies = 0 if early else recorded(record).total() + draw.randint(1, 20)
    while recorded(record).total() < studies:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(0.1)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(draw.uniform(0, 5 if early else 0.5))
    return None


def recorded(record: Path) -> Counter[str]:
    """How often each study is in the record as finished."""
    if not (record / "mlflow.db").exists():
        return Counter()
    query = """SELECT value FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid
               WHERE tags.key = 'oodbench.study' AND status = 'FINISHED' AND lifecycle_stage = 'active'"""
    with contextlib.closing(sqlite3.connect(f"file:{record}/mlflow.db?mode=ro", uri=True, timeout=60)) as database:
        try:
            return Counter(study for (study,) in database.execute(query))
        except sqlite3.OperationalError:  # no tables yet
            return Counter()


def left_over(mark: str) -> list[str]:
    """Processes that drivers started and that are still there, if they do not go within a minute: after kill -9 nobody
    ends a worker that was just being started, and it takes a while to find that its Ray is gone."""
    for _ in range(600):
        left = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and _has(entry, mark)]
        if not left:
            return []
        time.sleep(0.1)
    return [f"{entry}: {(entry / 'cmdline').read_bytes()[:300]!r}" for entry in left]


def _has(process: Path, mark: str) -> bool:
    try:
        return mark.encode() in (process / "environ").read_bytes()
    except OSError:  # it has ended, or is another user's
        return False
