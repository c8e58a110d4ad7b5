"""The moderated paired t-test: a pair's variance, steadied by those of the other pairs.

Ten seeds say little about the variance of a difference, and a family of many claims asks for p-values far out in the
tail, where that matters most. The pairs of a board tell each other how large a variance usually is: the variances are
taken as draws from a scaled inverse chi-square whose scale and degrees of freedom are estimated from all of them
(Smyth 2004, as limma does). Each variance is drawn towards that scale, and the test has the degrees of freedom of both.
Where the pairs differ much in variance, the estimate says so, and the test is near the usual paired t-test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST_UNITS = 5  # with fewer, the test misses its level where one method is noisier; intervals miss theirs anywhere
FEWEST_PAIRS = 3  # with two, the test misses its level where one of them is noisier
SAME = 1e-9  # relative differences below it are rounding
Numbers = NDArray[np.float64]


def differences(a: Numbers, b: Numbers) -> Numbers:
    """a - b; differences within rounding are 0."""
    difference = a - b
    return np.where(np.abs(difference) <= SAME * np.maximum(np.abs(a), np.abs(b)), 0.0, difference)


def moderated_t(gaps: Numbers, independent: int) -> Numbers:
    """Two-sided p-values of a family of paired differences.  # [..., pair, unit] -> [..., pair]

    Units that are not a number are left out; with too few units p is 1. `independent` says how many of the pairs are:
    k methods make many pairs, but only k - 1 independent ones, and together no more is known than these tell.
    """
    from scipy.stats import t

    units, means, variances = _moments(gaps)
    variances, freedom = _moderate(variances, units - 1, independent)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * t.sf(np.abs(means) / np.sqrt(variances / units), freedom)
    return np.where((means == 0) | (units < FEWEST_UNITS), 1.0, p)


def pair_p(values: Numbers) -> Numbers:
    """p-values of all pairs of methods, moderated together.  # [..., method, unit] -> [..., method, method]"""
    methods = values.shape[-2]
    first, second = np.triu_indices(methods, 1)
    p = np.ones((*values.shape[:-1], methods))
    p[..., first, second] = moderated_t(differences(values[..., first, :], values[..., second, :]), methods - 1)
    p[..., second, first] = p[..., first, second]
    return p


def shared_p(values: Numbers) -> Numbers:
    """p-values of the k - 1 claims that share a method, for each method.  # [..., method, unit] -> [..., method, other]

    If the shared method is noisier than the others, all its pairs have larger variances than pairs usually have. So
    these claims are moderated by all pairs and among themselves, and the larger p counts.
    """
    methods = values.shape[-2]
    every = np.arange(methods)
    others = np.array([np.delete(every, method) for method in every])  # [method, claim]
    gaps = differences(values[..., :, None, :], values[..., others, :])  # [..., method, claim, unit]
    p = np.ones((*values.shape[:-1], methods))
    p[..., every[:, None], others] = moderated_t(gaps, methods - 1)
    return np.maximum(p, pair_p(values))


def mean_gaps(values: Numbers) -> Numbers:
    """Mean differences, positive where the first is larger.  # [..., method, unit] -> [..., method, method]"""
    return _moments(differences(values[..., :, None, :], values[..., None, :, :]))[1]


def _moments(gaps: Numbers) -> tuple[Any, Numbers, Numbers]:
    """How many units there are, their mean, and their sample variance: 0 where it is rounding.  # [...]"""
    known = np.isfinite(gaps)
    units = known.sum(-1)
    filled = np.where(known, gaps, 0.0)
    means = filled.sum(-1) / np.maximum(units, 1)
    squares = np.where(known, (filled - means[..., None]) ** 2, 0.0).sum(-1) / np.maximum(units - 1, 1)
    rounding = (SAME * np.abs(filled).max(-1, initial=0.0)) ** 2
    return units, means, np.where(squares <= rounding, 0.0, squares)


def _moderate(variances: Numbers, freedom: Any, independent: int) -> tuple[Numbers, Numbers]:
    """The variances drawn towards their common scale, and the degrees of freedom.  # [..., pair]

    A variance of 0 tells nothing of the scale: its logarithm would be minus infinity. Fewer than three variances do not
    tell how much they differ, and stay as they are.
    """
    from scipy.special import digamma, polygamma

    tells = (variances > 0) & (freedom >= FEWEST_UNITS - 1)
    count = tells.sum(-1, keepdims=True)
    half = np.where(tells, freedom, 2) / 2
    logs = np.where(tells, np.log(np.where(tells, variances, 1.0)) - digamma(half) + np.log(half), 0.0)
    center = logs.sum(-1, keepdims=True) / np.maximum(count, 1)
    apart = np.where(tells, (logs - center) ** 2, 0.0).sum(-1, keepdims=True) / np.maximum(count - 1, 1)
    chance = np.where(tells, polygamma(1, half), 0.0).sum(-1, keepdims=True) / np.maximum(count, 1)
    prior = 2 * _inverse_trigamma(np.maximum(apart - chance, 1e-9))  # degrees of freedom
    scale = np.exp(center + digamma(prior / 2) - np.log(prior / 2))
    moderated = (prior * scale + freedom * variances) / (prior + freedom)
    known = np.minimum(prior + freedom, independent * freedom.max(-1, keepdims=True, initial=0))
    enough = count >= FEWEST_PAIRS
    return np.where(enough, moderated, variances), np.where(enough, known, freedom)


def _inverse_trigamma(values: Numbers) -> Numbers:
    """By Newton's method on 1 / trigamma, which is convex and nearly linear: it converges from here (Smyth 2004)."""
    from scipy.special import polygamma

    x = 0.5 + 1 / values
    for _ in range(20):
        trigamma = polygamma(1, x)
        x = x + trigamma * (1 - trigamma / values) / polygamma(2, x)
    return np.where(values > 1e7, 1 / np.sqrt(values), x)
