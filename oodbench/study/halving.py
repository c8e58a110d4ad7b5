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

FIRST, SECOND = 16, 4  # the first rungs end after a sixteenth and after a quarter of the steps
REDUCTION = 4  # configurations for each trial of the budget at first; one in four goes on to the second rung


@dataclass(frozen=True)
class Rung:
    steps: int  # to which its configurations are trained
    trials: int  # configurations


def plan_rungs(trials: int, steps: int, most: float, pauses: bool) -> tuple[Rung, ...]:
    """For a budget of so many trials, where there are at most `most` configurations.

    As many are trained to the end as the steps allow that the first rungs leave. Of a method that cannot pause, steps
    of earlier rungs are made again: fewer get there. Where none would, or where there are no more configurations than
    a random search has, there is one rung, of all steps.
    """
    first, second = steps // FIRST, steps // SECOND
    begun = int(min(REDUCTION * trials, most))
    left = trials * steps - begun * first - trials * (second - first * pauses)
    last = min(trials, left // (steps - second * pauses))
    if begun <= trials or not first or last < 1:
        return (Rung(steps, min(trials, begun)),)
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
