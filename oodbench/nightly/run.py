"""One night: the suite run from nothing, and the speed of its methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.driver.progress import Progress
from oodbench.errors import Interrupted
from oodbench.nightly.baseline import Night, night_of
from oodbench.nightly.findings import SLOWER
from oodbench.nightly.speed import measure
from oodbench.study.machine import this_machine

if TYPE_CHECKING:
    from oodbench.api.suites import SuiteResult

AGAIN = 2  # how often a method that seems slower is measured once more: chance does not repeat, a slower method does


def run_night(
    suite: str, directory: Path, progress: Progress, before: Night | None = None, address: str | None = None
) -> tuple[Night, SuiteResult]:
    """Every study is trained, whatever the record has of earlier nights; on the CPU, which gives the same bits."""
    from oodbench.api.suites import run_suite

    try:
        result = run_suite(suite, directory=directory, address=address, fresh=True, device="cpu", progress=progress)
    except Interrupted:
        raise Interrupted("stopped.\nA nightly run cannot be continued: the same command starts it again.") from None
    methods = list(dict.fromkeys(part.spec.asked.name for part, _ in result.parts))
    progress.stage("measuring the speed of the methods")
    speed = measure(methods)
    ratios = dict(speed.ratios)
    for _ in range(AGAIN):
        earlier = before.speed if before is not None else {}
        slower = [name for name, ratio in ratios.items() if ratio > SLOWER * earlier.get(name, ratio)]
        if not slower:
            break
        progress.stage(f"measuring again: {', '.join(slower)}")
        ratios |= {name: min(ratio, ratios[name]) for name, ratio in measure(slower).ratios.items()}
    return night_of(result, this_machine(), ratios, speed.faults), result
