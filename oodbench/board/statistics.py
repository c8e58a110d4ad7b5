"""How sure a difference is: paired tests that count what is independent, tiers, and intervals.

Results come as a table of seeds and environments, whose cells are not independent: those of a seed share the training
data, those of an environment its rows. So a claim has a unit, and one number of each unit enters:

    over seeds         per-seed values: better on average over training draws, on these environments
    over environments  per-environment means over seeds: better on environments like these, for these training draws

docs/statistics.md shows by simulation that the errors stay at their level, and what pairing cells would do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05
CONFIDENCE = 0.95
RESAMPLES = 9_999
FEWEST_FOR_INTERVAL = 5  # with fewer, resampling cannot reach the ends of an interval
MOST_EXACT = 13  # units whose 2^n signs are all tried where ranks are tied
SAME = 1e-9  # relative differences below it are rounding
Over = Literal["seeds", "environments"]
OVER: tuple[Over, ...] = ("seeds", "environments")
Numbers = NDArray[np.float64]


# Tests -------------------------------------------------------------------------------------------------------------


def differences(a: Numbers, b: Numbers) -> Numbers:
    """a - b; differences within rounding are 0."""
    difference = a - b
    return np.where(np.abs(difference) <= SAME * np.maximum(np.abs(a), np.abs(b)), 0.0, difference)


def signed_rank(gaps: Numbers) -> Numbers:
    """Two-sided p-values of Wilcoxon's signed-rank test, exact where possible.  # [..., unit] -> [...]

    Units without a difference are left out, as are those that are not a number.
    """
    from scipy.stats import rankdata, wilcoxon

    rows = gaps.reshape(-1, gaps.shape[-1])
    p = np.ones(len(rows))
    sizes = np.sort(np.abs(rows), axis=-1)
    plain = np.isfinite(rows).all(-1) & (rows != 0).all(-1) & (np.diff(sizes, axis=-1) > 0).all(-1)
    if plain.any():
        p[plain] = wilcoxon(rows[plain], axis=-1, method="auto" if rows.shape[-1] > 50 else "exact").pvalue
    for index in np.flatnonzero(~plain):
        row = rows[index]
        row = row[np.isfinite(row) & (row != 0)]
        ranks = rankdata(np.abs(row))
        if len(row) and len(row) <= MOST_EXACT and len(np.unique(ranks)) < len(row):
            p[index] = _all_signs(np.sign(row) * ranks)
        elif len(row):
            p[index] = wilcoxon(row).pvalue
    return p.reshape(gaps.shape[:-1])


def _all_signs(ranks: Numbers) -> float:
    """scipy's exact distribution knows no ties, so all signs of the ranks are tried."""
    from scipy.stats import permutation_test

    tried = permutation_test(
        (ranks,), lambda x, axis: x.sum(axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=2 ** len(ranks),
    )  # fmt: skip
    return float(tried.pvalue)


def holm(p: Numbers) -> Numbers:
    """p-values adjusted so that the chance of any false claim in the family stays at the level.  # [..., claim]"""
    order = np.argsort(p, axis=-1, kind="stable")
    count = p.shape[-1]
    stepped = np.take_along_axis(p, order, -1) * (count - np.arange(count))
    adjusted = np.empty_like(p, dtype=float)
    np.put_along_axis(adjusted, order, np.minimum(np.maximum.accumulate(stepped, axis=-1), 1), -1)
    return adjusted


def fewest_units(claims: int) -> int:
    """How many units it takes before any of so many claims can be significant: all signs alike have p = 2^(1-n)."""
    return max(2, math.ceil(1 + math.log2(max(claims, 1) / LEVEL)))


def direction(gaps: Numbers) -> Numbers:
    """1 where the signed ranks say that the first of a pair is larger, -1 where the second is.  # [..., unit]"""
    from scipy.stats import rankdata

    finite = np.nan_to_num(gaps)
    ranks = rankdata(np.where(finite == 0, np.inf, np.abs(finite)), axis=-1)  # zeros take no rank from others
    return np.asarray(np.sign((np.sign(finite) * ranks).sum(-1)))


# Tiers -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tiers:
    """The tier of each method, 1 is the first; none where there are too few units to tell, or nothing to compare."""

    of: tuple[int, ...] | None
    units: int
    needed: int  # before any difference could be significant

    @property
    def too_few(self) -> bool:
        return self.of is None and self.units < self.needed


def find_tiers(values: Numbers) -> Tiers:
    """Tiers of methods by values where lower is better.  # [method, unit], not a number where there is none

    Tier 1 is the method with the smallest mean and all that are not significantly worse than it; then the same among
    the rest. Significant: Wilcoxon on the units both have, at 5 % after Holm's correction over all pairs.
    """
    pairs = list(combinations(range(len(values)), 2))
    if not pairs:
        return Tiers(None, 0, 0)
    first, second = (list(side) for side in zip(*pairs, strict=True))
    gaps = differences(values[first], values[second])  # [pair, unit]
    units, needed = int(np.isfinite(gaps).sum(-1).max()), fewest_units(len(pairs))
    if units < needed:
        return Tiers(None, units, needed)
    significant = holm(signed_rank(gaps)) <= LEVEL
    worse = set[tuple[int, int]]()  # (this one, than that one)
    for (a, b), sure, side in zip(pairs, significant, direction(gaps), strict=True):
        if sure and side != 0:
            worse.add((a, b) if side > 0 else (b, a))
    return Tiers(_split(np.nanmean(values, axis=-1).tolist(), worse), units, needed)


def _split(means: Sequence[float], worse: set[tuple[int, int]]) -> tuple[int, ...]:
    tiers, left, tier = [0] * len(means), set(range(len(means))), 0
    while left:
        tier += 1
        leader = min(left, key=lambda method: (means[method], method))
        for method in [method for method in left if (method, leader) not in worse]:
            tiers[method] = tier
            left.remove(method)
    return tuple(tiers)


# Intervals ---------------------------------------------------------------------------------------------------------

Interval = tuple[float, float]


def mean_interval(units: Numbers) -> Interval | None:
    """The 95 % interval of the mean, by a bootstrap of the units (seeds, or environments); None with fewer than 5."""
    from scipy.stats import bootstrap

    if len(units) < FEWEST_FOR_INTERVAL or not np.isfinite(units).all():
        return None
    resampled = bootstrap(
        (np.sort(units),), np.mean, n_resamples=RESAMPLES, method="percentile",
        confidence_level=_expanded(len(units)), rng=np.random.default_rng(0),
    )  # fmt: skip
    return float(resampled.confidence_interval.low), float(resampled.confidence_interval.high)


def crossed_interval(table: Numbers) -> Interval | None:
    """The interval of the mean where seeds and environments are both drawn anew.  # [seed, environment]

    Rows and columns are resampled independently, each cell with the product of its counts (Owen's pigeonhole
    bootstrap); cells cannot be resampled alone, for they are not independent.
    """
    seeds, environments = table.shape
    if min(seeds, environments) < FEWEST_FOR_INTERVAL or not np.isfinite(table).all():
        return None
    rng = np.random.default_rng(0)
    of_seeds = rng.multinomial(seeds, np.full(seeds, 1 / seeds), RESAMPLES) / seeds  # [resample, seed]
    of_environments = rng.multinomial(environments, np.full(environments, 1 / environments), RESAMPLES) / environments
    means = ((of_seeds @ table) * of_environments).sum(-1)
    tail = (1 - _expanded(min(seeds, environments))) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def _expanded(units: int) -> float:
    """Percentiles of resampled means are too narrow for few units; this level makes up for it (Hesterberg 2015)."""
    from scipy.stats import norm, t

    quantile: Any = t.ppf((1 + CONFIDENCE) / 2, units - 1) * math.sqrt(units / (units - 1))
    return float(2 * norm.cdf(quantile) - 1)
