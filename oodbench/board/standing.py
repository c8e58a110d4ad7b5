"""Where methods stand on a metric: the tier of each, and intervals of its mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from oodbench.board.metrics import HIGHER_IS_BETTER, MEANS, cells_of
from oodbench.board.statistics import Interval, Over, Tiers, crossed_interval, find_tiers, mean_interval
from oodbench.study.record import CONSTANT

if TYPE_CHECKING:
    import pandas as pd

ALIKE = 1e-4  # relative difference of errors: training to a constant by gradient steps comes no nearer


@dataclass(frozen=True)
class Standing:
    """None where nothing can be said: too few units, nothing to compare with, or not in the comparison."""

    tier: int | None = None
    shared: bool = False  # the tier, with others
    intervals: Mapping[str, Interval] = field(default_factory=dict)  # by what is drawn anew: seeds, environments, both


def units_of(results: pd.DataFrame, per_seed: pd.DataFrame, metric: str, over: Over) -> pd.Series[float]:
    """The independent values of a method that a claim is about; none where the metric has no such values."""
    import pandas as pd

    if over == "seeds":
        return per_seed[metric]
    if metric not in MEANS:  # the largest error, say, is not made of one value per environment
        return pd.Series(dtype=float)
    table = cells_of(results, MEANS[metric])
    return table.mean() if not table.isna().to_numpy().any() else pd.Series(dtype=float)


def compare_methods(
    metric: str,
    results: Mapping[str, pd.DataFrame],
    per_seed: Mapping[str, pd.DataFrame],
    over: Over,
    compared: set[str],
) -> tuple[dict[str, Standing], Tiers]:
    """The standing of every method by label; only those `compared` get a tier."""
    import pandas as pd

    units = {label: units_of(results[label], per_seed[label], metric, over) for label in results}
    ranked = [label for label in results if label in compared and len(units[label]) and not units[label].isna().any()]
    sign = -1 if metric in HIGHER_IS_BETTER else 1
    aligned = pd.DataFrame({label: sign * units[label] for label in ranked})
    tiers = find_tiers(aligned.to_numpy(float).T if ranked else np.empty((0, 0)))
    place = dict(zip(ranked, tiers.of or (), strict=False))
    return {
        label: Standing(
            place.get(label),
            list(place.values()).count(place[label]) > 1 if label in place else False,
            intervals_of(results[label], per_seed[label], metric),
        )
        for label in results
    }, tiers


def find_constant(studies: Iterable[pd.DataFrame]) -> pd.DataFrame | None:
    """The result rows of the constant, as if it were a study: those of the first study with most of them."""
    found = max((results[results["part"] == CONSTANT] for results in studies), key=len, default=None)
    return None if found is None or found.empty else found.assign(part="test", chosen=True)


def find_collapsed(results: Mapping[str, pd.DataFrame], references: Sequence[pd.DataFrame]) -> set[str]:
    """The labels of methods that learned nothing: on every seed and test environment they err as a reference does."""
    constants = [cells_of(reference, "error") for reference in references]
    methods = {
        label: cells_of(table, "error")
        for label, table in results.items()
        if not any(table is reference for reference in references)
    }
    return {label for label, errors in methods.items() if any(_alike(errors, constant) for constant in constants)}


def _alike(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    same_cells = a.index.equals(b.index) and set(a.columns) == set(b.columns)
    return same_cells and bool(np.allclose(a, b[a.columns], rtol=ALIKE, atol=1e-9))


def intervals_of(results: pd.DataFrame, per_seed: pd.DataFrame, metric: str) -> dict[str, Interval]:
    intervals = {"seeds": mean_interval(per_seed[metric].to_numpy(float))}
    if metric in MEANS:
        table = cells_of(results, MEANS[metric]).to_numpy(float)  # [seed, environment]
        intervals["environments"] = mean_interval(table.mean(0))
        intervals["both"] = crossed_interval(table)
    return {name: interval for name, interval in intervals.items() if interval is not None}
