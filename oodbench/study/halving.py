"""Successive halving: many configurations are trained a little, and the best of each rung go on.

All of it is decided by validation scores of whole rungs, so nothing depends on which worker was faster. The trainings
of a study take no more steps of the recipe than those of a random search: its trials times the steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from oodbench.study.selectors import score_configurations

FIRST, SECOND = 8, 2  # the first rungs end after an eighth and after half of the steps
REDUCTION = 4  # configurations for each trial of the budget at first; one in four of those at half the steps goes on


@dataclass(frozen=True)
class Rung:
    steps: int  # to which its configurations are trained
    trials: int  # configurations


def plan_rungs(trials: int, steps: int, most: float, pauses: bool) -> tuple[Rung, ...]:
    """For a budget of so many trials, where there are at most `most` configurations.

    Of a method that cannot pause, the steps of earlier rungs are made again: it begins with fewer. Where the budget is
    too small for more configurations than a random search has, there is one rung, of all steps.
    """
    first, second = steps // FIRST, steps // SECOND
    last = max(1, trials // REDUCTION)
    later = trials * (second - first * pauses) + last * (steps - second * pauses)
    begun = int(min(REDUCTION * trials, (trials * steps - later) // first, most)) if first else 0
    if begun <= trials:
        return (Rung(steps, int(min(trials, most))),)
    return Rung(first, begun), Rung(second, trials), Rung(steps, last)


def describe_rungs(rungs: Iterable[tuple[int, int]]) -> str:
    """In words; each is a number of configurations, and the steps to which they are trained."""
    (begun, least), *later = rungs
    if not later:
        return f"{begun} configurations, all trained to the end"
    parts = [f"{begun} configurations to {least:,} steps", *(f"{count} of them to {steps:,}" for count, steps in later)]
    return ", ".join(parts)


def best_configurations(rows: Iterable[Mapping[str, Any]], selector: str, seeds: int, count: int) -> tuple[int, ...]:
    """As many as go on, by what the selector says of their validation rows: those that were trained on every seed."""
    import pandas as pd

    frame = pd.DataFrame(list(rows))
    if frame.empty:
        return ()
    scores = score_configurations(frame, selector)
    complete = scores[scores["count"] == seeds]["mean"]
    ranked = sorted((float(score), int(str(number))) for number, score in complete.items() if math.isfinite(score))
    return tuple(sorted(number for _, number in ranked[:count]))
