"""How sure a difference is: families of paired tests that count what is independent, tiers, and intervals.

Results come as a table of seeds and environments, whose cells are not independent: those of a seed share the training
data, those of an environment its rows. So a claim has a unit, and one number of each unit enters:

    over seeds         per-seed values: better on average over training draws, on these environments
    over environments  per-environment means over seeds: better on environments like these, for these training draws

There are three families of claims. The errors of each stay at their level where differences are as likely above their
mean as below; docs/statistics.md shows it by simulation, and what skewed differences do:

    all pairs          tiers: in at most 5 % of boards is any method said to be worse than one that is as good
    against the best   a method that is as good as any is said not to be in at most 5 % of boards
    against one        better or worse than a named method: in at most 5 % of boards is any such claim false
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oodbench.board.moderated import FEWEST_UNITS, Numbers, mean_gaps, pair_p, shared_p

LEVEL = 0.05
CONFIDENCE = 0.95
RESAMPLES = 9_999
MANY = 1_000  # units: resampled means are as good as normal, and are not drawn
Over = Literal["seeds", "environments"]
OVER: tuple[Over, ...] = ("seeds", "environments")
Flags = NDArray[np.bool_]


# Families of claims ------------------------------------------------------------------------------------------------


def holm(p: Numbers) -> Numbers:
    """p-values adjusted so that the chance of any false claim in the family stays at the level.  # [..., claim]"""
    order = np.argsort(p, axis=-1, kind="stable")
    count = p.shape[-1]
    stepped = np.take_along_axis(p, order, -1) * (count - np.arange(count))
    adjusted = np.empty_like(p, dtype=float)
    np.put_along_axis(adjusted, order, np.minimum(np.maximum.accumulate(stepped, axis=-1), 1), -1)
    return adjusted


def worse_pairs(values: Numbers) -> Flags:
    """Where the first is significantly larger than the second, all pairs one family.  # [..., method, method]"""
    methods = values.shape[-2]
    first, second = np.triu_indices(methods, 1)
    significant = np.zeros((*values.shape[:-1], methods), bool)
    significant[..., first, second] = holm(pair_p(values)[..., first, second]) <= LEVEL
    significant |= np.swapaxes(significant, -1, -2)
    return significant & (mean_gaps(values) > 0)


def may_be_best(values: Numbers) -> Flags:
    """Methods that are not significantly larger than the best of the others.  # [..., method, unit] -> [..., method]

    One-sided against each of the others, k - 1 claims a method: a method that is truly among the best is left out in
    at most 5 % of boards. That is a promise to each method, not to all at once.
    """
    methods = values.shape[-2]
    p = shared_p(values) / 2
    one_sided = np.where(mean_gaps(values) > 0, p, 1 - p)
    return np.asarray(one_sided.min(-1) * (methods - 1) > LEVEL)


def sides_of(values: Numbers, reference: int) -> NDArray[np.int_]:
    """-1 for methods significantly below the reference, 1 for those above, 0 for the others: k - 1 claims.

    # [..., method, unit] -> [..., method]
    """
    p = np.delete(shared_p(values)[..., reference, :], reference, axis=-1)
    significant = np.insert(holm(p) <= LEVEL, reference, False, axis=-1)
    return np.where(significant, np.sign(mean_gaps(values)[..., reference]), 0).astype(int)


# Tiers -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tiers:
    """The tier of each method, 1 is the first; none where there are too few units to tell, or nothing to compare."""

    of: tuple[int, ...] | None = None
    best: tuple[bool, ...] = ()  # whether each may be the best
    units: int = 0
    worse: tuple[tuple[bool, ...], ...] = ()  # where the first is significantly worse than the second
    missing: int = 0  # how many more it takes before anything is tested

    @property
    def too_few(self) -> bool:
        return self.missing > 0


def find_tiers(values: Numbers) -> Tiers:
    """Tiers of methods by values where lower is better.  # [method, unit], not a number where there is none

    Tier 1 are the methods that are not significantly worse than any other; then the same among the rest. So a method
    that is significantly worse than another is in a later tier. Significant: the moderated paired t-test on the units
    both have, at 5 % after Holm's correction over all pairs. In tier 1, those that `may_be_best` are told apart.
    """
    if len(values) < 2:
        return Tiers()
    units, missing = count_units(values)
    if missing:
        return Tiers(None, (), units, missing=missing)
    worse = worse_pairs(values)
    tiers = _peel(worse)
    best = [tier == 1 and bool(may) for tier, may in zip(tiers, may_be_best(values), strict=True)]
    return Tiers(tiers, tuple(best), units, tuple(map(tuple, worse.tolist())))


def count_units(values: Numbers) -> tuple[int, int]:
    """The most units that any two methods share, and how many more it takes for a test.  # [method, unit]"""
    known = np.isfinite(values).astype(int)
    shared = known @ known.T
    np.fill_diagonal(shared, 0)
    units = int(shared.max())
    return units, max(0, FEWEST_UNITS - units)


def _peel(worse: Flags) -> tuple[int, ...]:
    """A tier for each method: the next one goes to those that are worse than none of the rest.  # [method, method]"""
    tiers, tier = np.zeros(len(worse), int), 0
    while (left := tiers == 0).any():
        tier += 1
        free = left & ~worse[:, left].any(-1)
        tiers[free if free.any() else left] = tier  # means over different units may go in a circle
    return tuple(tiers.tolist())


# Intervals ---------------------------------------------------------------------------------------------------------

Interval = tuple[float, float]


def mean_interval(units: Numbers) -> Interval | None:
    """The 95 % interval of the mean, by a bootstrap of the units (seeds, or environments); None with fewer than 5."""
    from scipy.stats import bootstrap, norm

    if len(units) < FEWEST_UNITS or not np.isfinite(units).all():
        return None
    if len(units) > MANY:
        half = float(norm.ppf((1 + _expanded(len(units))) / 2) * units.std() / math.sqrt(len(units)))
        return float(units.mean()) - half, float(units.mean()) + half
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
    if min(seeds, environments) < FEWEST_UNITS or not np.isfinite(table).all():
        return None
    rng = np.random.default_rng(0)
    of_seeds = rng.multinomial(seeds, np.full(seeds, 1 / seeds), RESAMPLES) / seeds  # [resample, seed]
    if environments > MANY:
        spread = np.einsum("rs,st,rt->r", of_seeds, np.cov(table, ddof=0), of_seeds)  # over environments, given seeds
        means = of_seeds @ table.mean(-1) + np.sqrt(spread / environments) * rng.standard_normal(RESAMPLES)
    else:
        even = np.full(environments, 1 / environments)
        of_environments = rng.multinomial(environments, even, RESAMPLES) / environments
        means = ((of_seeds @ table) * of_environments).sum(-1)
    tail = (1 - _expanded(min(seeds, environments))) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def _expanded(units: int) -> float:
    """Percentiles of resampled means are too narrow for few units; this level makes up for it (Hesterberg 2015)."""
    from scipy.stats import norm, t

    quantile: Any = t.ppf((1 + CONFIDENCE) / 2, units - 1) * math.sqrt(units / (units - 1))
    return float(2 * norm.cdf(quantile) - 1)
