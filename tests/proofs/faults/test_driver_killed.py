"""The driver ended at 20 random moments from the first second to the last, in turn with SIGKILL, SIGTERM and SIGHUP;
each time the same command continues."""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import oodbench

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
TRIALS, SEEDS = 60, 4
STUDY = [
    "-m", "erm", "-d", "selection_bias", "--trials", str(TRIALS), "--seeds", str(SEEDS), "--set", "majority=200",
    "--set", "minority=40", "--set", "test_rows=50", "--set-training", "steps=4000",
]  # fmt: skip


@pytest.fixture(scope="module")
def expected(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Any]]:
    """The table of an undisturbed run."""
    board = oodbench.run(
        "erm", "selection_bias", settings={"majority": 200, "minority": 40, "test_rows": 50}, trials=TRIALS,
        seeds=SEEDS, recipe={"steps": 4000}, directory=tmp_path_factory.mktemp("undisturbed"),
    ).leaderboard()  # fmt: skip
    return [(row["method"], row["metrics"]) for row in board.as_dict()["rows"]]


@pytest.mark.parametrize(
    ("stage", "kills", "longest"),  # after this came to pass, at most so many seconds
    [
        ("begin", 6, 5.0),
        ("start", 2, 3.0),
        ("search", 3, 3.0),
        ("select", 3, 0.3),
        ("record", 3, 0.8),
        ("recorded configuration", 3, 0.8),
    ],
)
def test_every_kill_ends_in_the_same_table(
    kill_and_resume: Callable[..., Any], expected: list[tuple[str, Any]], stage: str, kills: int, longest: float
) -> None:
    draw = random.Random(stage)
    same = repeated = 0
    for _, number in zip(range(kills), itertools.cycle(SIGNALS), strict=False):
        delay, started = round(draw.uniform(0, longest), 3), time.monotonic()
        killed = kill_and_resume(stage, delay, TRIALS * SEEDS, *STUDY, number=number)
        same, repeated = same + (killed.numbers == expected), repeated + killed.repeated
        print(
            f"{number.name} {delay:.3f} s after {stage}: {killed.packs} packs finished, "
            f"{killed.repeated} trainings repeated, "
            f"same table: {killed.numbers == expected}, {time.monotonic() - started:.0f} s"
        )
        assert killed.runs == Counter(
            {("study", "FINISHED", "active"): 1, ("configuration", "FINISHED", "active"): TRIALS}
        )
        assert killed.left == []
    print(f"{stage}: {same} of {kills} end in the identical table; {repeated} trainings of finished packs ran again")
    assert (same, repeated) == (kills, 0)
