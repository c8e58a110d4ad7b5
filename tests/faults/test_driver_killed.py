"""The driver killed with -9 at random moments, spread over the whole run; each time the same command continues."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

STUDY = [
    "-m", "erm", "-d", "selection_bias", "--trials", "60", "--seeds", "4", "--set", "majority=200",
    "--set", "minority=40", "--set", "test_rows=50", "--set-training", "steps=4000",
]  # fmt: skip
TRAININGS = 240
MOMENTS = {  # after this came to pass, at most so many seconds
    "start": (2, 3.0),
    "search": (6, 3.0),
    "select": (4, 0.3),
    "record": (4, 0.8),
    "recorded configuration": (4, 0.8),
}


def test_twenty_kills_twenty_times_the_same_table(
    kill_and_resume: Callable[..., Any], cli: Callable[..., Any], ray_address: str, tmp_path: Path
) -> None:
    undisturbed = cli("run", *STUDY, "--json", "--address", ray_address, "--directory", str(tmp_path / "undisturbed"))
    expected = [(row["method"], row["metrics"]) for row in undisturbed.json()[0]["rows"]]
    draw = random.Random(0)
    tried = same = repeated = 0
    for stage, (times, longest) in MOMENTS.items():
        for _ in range(times):
            delay, started = round(draw.uniform(0, longest), 3), time.monotonic()
            killed = kill_and_resume(stage, delay, TRAININGS, *STUDY)
            tried, repeated = tried + 1, repeated + killed.repeated
            same += killed.numbers == expected
            print(
                f"killed {delay:.3f} s after {stage}: {killed.packs} packs finished, {killed.repeated} trainings "
                f"repeated, same table: {killed.numbers == expected}, {time.monotonic() - started:.0f} s"
            )
            assert killed.runs == Counter(
                {("study", "FINISHED", "active"): 1, ("configuration", "FINISHED", "active"): 60}
            )
            assert killed.left == []
    print(f"{same} of {tried} end in the identical table; {repeated} trainings of finished packs ran again")
    assert (tried, same, repeated) == (20, 20, 0)
