"""Where methods stand on a metric: the tier of each, and intervals of its mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from oodbench.board.metrics import Weights, board_metric, cells_of, higher_is_better
from oodbench.board.moderated import Numbers
from oodbench.board.statistics import (
    Interval,
    Over,
    Tiers,
    count_units,
    crossed_interval,
    find_tiers,
    mean_interval,
    sides_of,
)
from oodbench.errors import UnknownName, UserError
from oodbench.study.record import CONSTANT

if TYPE_CHECKING:
    import pandas as pd

Side = Literal["better", "worse", "no difference shown"]
SIDES: dict[int, Side] = {-1: "better", 0: "no difference shown", 1: "worse"}  # of errors: lower is better
ALIKE = 1e-4  # relative difference of errors: training to a constant by gradient steps comes no nearer


@dataclass(frozen=True)
class Standing:
    """None where nothing can be said: too few units, nothing to compare with, or not in the comparison."""

    tier: int | None = None
    may_be_best: bool = False
    alone: bool = False  # the only one that may be
    side: Side | None = None  # against the method that the board is against
    missing: int = 0  # units, before anything is tested
    intervals: Mapping[str, Interval] = field(default_factory=dict)  # by what is drawn anew: seeds, environments, both
    worse_than: tuple[str, ...] = ()  # labels of methods that it is significantly worse than, all pairs one family


def units_of(results: pd.DataFrame, per_seed: pd.DataFrame, metric: str, over: Over) -> pd.Series[float]:
    """The independent values of a method that a claim is about; none where the metric has no such values."""
    import pandas as pd

    if over == "seeds":
        return per_seed[metric]
    if board_metric(metric).aggregate != "mean":  # the largest error, say, is not made of one value per environment
        return pd.Series(dtype=float)
    table = cells_of(results, board_metric(metric).column)
    return table.mean() if not table.isna().to_numpy().any() else pd.Series(dtype=float)


def compare_methods(
    metric: str,
    results: Mapping[str, pd.DataFrame],
    per_seed: Mapping[str, pd.DataFrame],
    over: Over,
    compared: set[str],
    against: str = "",
    weights: Weights = "equal",
) -> tuple[dict[str, Standing], Tiers]:
    """The standing of every method by label; only those `compared` get a tier.

    `against` a method there are no tiers: each is compared with that one only.
    """
    import pandas as pd

    units = {label: units_of(results[label], per_seed[label], metric, over) for label in results}
    wanted = compared | ({against} if against else set())
    ranked = [label for label in results if label in wanted and len(units[label]) and not units[label].isna().any()]
    sign = -1 if higher_is_better(metric) else 1
    aligned = pd.DataFrame({label: sign * units[label] for label in ranked})
    values = aligned.to_numpy(float).T if ranked else np.empty((0, 0))  # [method, unit]
    sides: dict[str, Side] = {}
    if against:
        tiers, sides = _compare_with(values, ranked, against)
    else:
        tiers = find_tiers(values)
    worse = {
        label: tuple(other for other, is_worse in zip(ranked, flags, strict=True) if is_worse)
        for label, flags in zip(ranked, tiers.worse, strict=False)
    }
    place, best = dict(zip(ranked, tiers.of or (), strict=False)), dict(zip(ranked, tiers.best, strict=False))
    return {
        label: Standing(
            place.get(label),
            best.get(label, False),
            best.get(label, False) and sum(tiers.best) == 1,
            sides.get(label),
            tiers.missing if label in ranked and label != against else 0,
            intervals_of(results[label], per_seed[label], metric, weights),
            worse.get(label, ()),
        )
        for label in results
    }, tiers


def _compare_with(values: Numbers, labels: Sequence[str], against: str) -> tuple[Tiers, dict[str, Side]]:
    """No tiers, but how many units there are; and the side of every other method, if there are enough."""
    if against not in labels or len(labels) < 2:
        return Tiers(), {}
    units, missing = count_units(values)
    if missing:
        return Tiers(None, (), units, missing=missing), {}
    sides = zip(labels, sides_of(values, labels.index(against)).tolist(), strict=True)
    return Tiers(None, (), units), {label: SIDES[side] for label, side in sides if label != against}


def label_of(name: str, methods: Mapping[str, str]) -> str:
    """The label that is meant: a method's name stands for its label, `erm` for `erm (steps=20)`, if it has only one."""
    labels = [label for label, method in methods.items() if method == name]
    return labels[0] if name not in methods and len(labels) == 1 else name


def not_comparable(label: str, on_board: set[str], with_results: set[str], unequal: Mapping[str, str]) -> UserError:
    """Why a board cannot be against this label."""
    if label not in on_board:
        return UnknownName("method on this board", label, on_board)
    why = f"its terms differ ({unequal[label]})" if label in unequal else "it is an oracle, chosen on test data"
    why = why if label in with_results else "it has no results"
    return UserError(f"methods cannot be compared with {label!r}: {why}.\nName another method with --against.")


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


def intervals_of(
    results: pd.DataFrame, per_seed: pd.DataFrame, metric: str, weights: Weights = "equal"
) -> dict[str, Interval]:
    """None where values are missing. With weights by rows, none over environments: others would have other rows."""
    if per_seed[metric].isna().any():
        return {}
    intervals = {"seeds": mean_interval(per_seed[metric].to_numpy(float))}
    if board_metric(metric).aggregate == "mean" and weights == "equal":
        table = cells_of(results, board_metric(metric).column).to_numpy(float)  # [seed, environment]
        intervals["environments"] = mean_interval(table.mean(0))
        intervals["both"] = crossed_interval(table)
    return {name: interval for name, interval in intervals.items() if interval is not None}
