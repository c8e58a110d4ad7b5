"""Tests and intervals: against scipy and closed forms, by properties, and by simulation where the truth is known."""

from __future__ import annotations

import math
import runpy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import polygamma
from scipy.stats import ttest_rel

from oodbench.board.moderated import FEWEST_UNITS, _inverse_trigamma, moderated_t, pair_p, shared_p
from oodbench.board.statistics import (
    LEVEL,
    MANY,
    crossed_interval,
    find_tiers,
    holm,
    may_be_best,
    mean_interval,
    sides_of,
    worse_pairs,
)
from places import ROOT

SIMULATION = runpy.run_path(str(ROOT / "docs" / "simulate_statistics.py"))
quick = settings(max_examples=40, deadline=None)
RNG = np.random.default_rng(0)

# whole numbers, so that shifting and scaling by whole numbers round nothing
tables = st.integers(2, 5).flatmap(
    lambda methods: arrays(np.float64, (methods, 9), elements=st.integers(-50, 50).map(float))
)


# Closed forms ------------------------------------------------------------------------------------------------------


def test_one_pair_is_scipys_paired_t_test() -> None:
    for units in (5, 10, 40):
        a, b = RNG.normal(size=(2, units)) + np.array([[0.3], [0.0]])
        expected = ttest_rel(a, b).pvalue
        assert moderated_t((a - b)[None], 1) == pytest.approx([expected])
        assert pair_p(np.array([a, b]))[0, 1] == pytest.approx(expected)
        assert shared_p(np.array([a, b]))[1, 0] == pytest.approx(expected)


def test_many_pairs_are_scipys_paired_t_tests_in_the_limit_of_many_units() -> None:
    """The more units a pair has, the less it is moderated."""
    scales = np.array([[0.5], [1.0], [1.5], [2.0], [4.0], [8.0]])
    apart = []
    for units in (10, 100, 10_000):
        gaps = scales * (RNG.normal(size=(6, units)) + 2 / np.sqrt(units))
        expected = np.array([ttest_rel(row, np.zeros(units)).pvalue for row in gaps])
        apart.append(np.abs(np.log(moderated_t(gaps, 6) / expected)).max())
    assert apart[0] > apart[1] > apart[2]
    assert apart[2] < 0.01


def test_equal_variances_are_pooled() -> None:
    """All pairs with one variance: the t-test has that variance and all degrees of freedom."""
    from scipy.stats import t

    shape = np.array([1.0, -1, 2, -2, 0.5, -0.5, 3, -3])
    gaps = shape + np.array([[0.2], [1.0], [-2.0]])
    variance = shape.var(ddof=1)
    # the scale is estimated from logarithms of variances, which are lower on average by digamma(d/2) - log(d/2)
    from scipy.special import digamma

    scale = variance * np.exp(np.log(3.5) - digamma(3.5))
    expected = 2 * t.sf(np.abs(gaps.mean(-1)) / np.sqrt(scale / 8), 3 * 7)
    assert moderated_t(gaps, 3) == pytest.approx(expected, rel=1e-5)


def test_the_inverse_of_trigamma() -> None:
    x = np.logspace(-4, 8, 50)
    assert _inverse_trigamma(polygamma(1, x)) == pytest.approx(x, rel=1e-6)


def test_missing_units_are_left_out_and_few_are_not_tested() -> None:
    row = RNG.normal(1, 1, size=12)
    some = np.where(np.arange(12) < 8, row, np.nan)
    assert moderated_t(some[None], 1) == pytest.approx([ttest_rel(row[:8], np.zeros(8)).pvalue])
    few = np.where(np.arange(12) < FEWEST_UNITS - 1, 1 + 1e-3 * row, np.nan)
    assert moderated_t(few[None], 1).tolist() == [1.0]


def test_no_variance_is_no_difference_or_a_sure_one() -> None:
    same, other = np.full(9, 3.0), np.full(9, 4.0)
    assert pair_p(np.array([same, same, other])).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    rounding = np.linspace(1, 2, 9)
    assert pair_p(np.array([rounding, rounding + 1]))[0, 1] == 0  # whose differences are 1, up to rounding
    varied = np.vstack([same, other, RNG.normal(3, 1, size=(4, 9))])
    assert 0 < pair_p(varied)[0, 1] < 1  # the others say that a difference varies


def test_holm_by_hand() -> None:
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.5, 0.9])) == pytest.approx([1.0, 1.0])
    assert holm(np.array([[0.02], [0.2]])) == pytest.approx(np.array([[0.02], [0.2]]))


def test_few_units_say_how_many_more_and_tiers_are_wherever_intervals_are() -> None:
    values = np.array([np.arange(9.0), 100 + np.arange(9.0) ** 2])
    for units in range(1, 9):
        tiers = find_tiers(values[:, :units])
        assert (tiers.of is None) == tiers.too_few == (mean_interval(values[0, :units]) is None)
        assert tiers.units + tiers.missing == max(units, FEWEST_UNITS)
    assert find_tiers(np.ones((1, 9))).of is None


def test_tiers_are_split_at_what_none_is_better_than() -> None:
    noise = RNG.normal(0, 0.1, size=(6, 12))
    means = np.array([3.0, 1.0, 1.01, 5.0, 3.01, 1.02])
    tiers = find_tiers(means[:, None] + noise)
    assert tiers.of == (2, 1, 1, 3, 2, 1)
    assert tiers.best == (False, True, True, False, False, True)


def test_fewer_claims_find_more_than_all_pairs() -> None:
    values = np.random.default_rng(3).normal(size=(30, 20, 10)) / np.sqrt(2)  # [board, method, unit]
    values[:, 0] -= 1
    in_tiers, against = worse_pairs(values)[:, 1:, 0].sum(), (sides_of(values, 0)[:, 1:] > 0).sum()
    not_best = (~may_be_best(values)[:, 1:]).sum()
    assert 1.5 * in_tiers < min(against, not_best)
    tiers = [find_tiers(board) for board in values]
    assert sum(sum(found.best) for found in tiers) < sum((found.of or ()).count(1) for found in tiers)
    assert all(tier == 1 for found in tiers for tier, best in zip(found.of or (), found.best, strict=True) if best)


def test_a_mean_that_one_bad_draw_makes_is_no_win() -> None:
    a, b = np.linspace(1, 1.2, 10), np.linspace(0.5, 0.6, 10)
    b[3] = 100.0
    assert find_tiers(np.array([a, b])).of == (1, 1)


# Properties --------------------------------------------------------------------------------------------------------


@quick
@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_methods_and_units_does_not_matter(values: np.ndarray, random: Any) -> None:
    methods, units = list(range(len(values))), list(range(values.shape[1]))
    random.shuffle(methods)
    random.shuffle(units)
    shuffled = values[methods][:, units]
    for p in (pair_p, shared_p):
        assert p(shuffled) == pytest.approx(p(values)[np.ix_(methods, methods)], rel=1e-6)
    before, after = find_tiers(values), find_tiers(shuffled)
    assert before.of is not None
    assert after.of == tuple(before.of[method] for method in methods)
    assert after.best == tuple(before.best[method] for method in methods)
    assert sides_of(shuffled, 0).tolist() == sides_of(values, methods[0])[methods].tolist()
    assert mean_interval(values[0]) == mean_interval(values[0][units])


spread_out = st.integers(2, 6).flatmap(
    lambda methods: st.tuples(
        arrays(np.float64, (methods, 9), elements=st.integers(-50, 50).map(float)),
        arrays(np.float64, (methods, 1), elements=st.sampled_from([0.0, 50.0, 100.0, 200.0])),
    ).map(sum)
)


@quick
@given(spread_out)
def test_a_tier_never_contradicts_a_significant_pair(values: np.ndarray) -> None:
    tiers = find_tiers(values)
    assert tiers.of is not None
    worse = worse_pairs(values)
    for a, b in np.argwhere(worse):
        assert tiers.of[a] > tiers.of[b]
        assert values[a].mean() > values[b].mean()
        assert not tiers.best[a]
    for method, tier in enumerate(tiers.of):  # and nobody is in a later tier without a reason
        assert tier == 1 or any(worse[method, other] and tiers.of[other] == tier - 1 for other in range(len(values)))
    assert any(tiers.best)


@quick
@given(spread_out)
def test_the_one_with_the_best_mean_may_be_the_best(values: np.ndarray) -> None:
    assert may_be_best(values)[values.mean(-1).argmin()]
    assert sides_of(values, int(values.mean(-1).argmin())).min() == 0
    assert sides_of(values, int(values.mean(-1).argmax())).max() == 0


@quick
@given(tables, st.integers(-100, 100), st.sampled_from([0.25, 1.0, 2.0, 64.0]))
def test_shifts_and_scales_change_intervals_alike_and_tiers_not(values: np.ndarray, shift: int, scale: float) -> None:
    moved = scale * values + shift
    assert find_tiers(moved).of == find_tiers(values).of
    before, after = mean_interval(values[0]), mean_interval(moved[0])
    assert before is not None
    assert after == pytest.approx([scale * end + shift for end in before], abs=1e-9)


@quick
@given(tables)
def test_what_all_methods_share_does_not_matter(values: np.ndarray) -> None:
    of_the_seeds = 8.0 * np.arange(values.shape[1])
    assert np.array_equal(pair_p(values), pair_p(values + of_the_seeds))
    assert np.array_equal(shared_p(values), shared_p(values + of_the_seeds))


@quick
@given(tables, st.integers(2, 4))
def test_identical_methods_are_never_told_apart(values: np.ndarray, copies: int) -> None:
    copied = np.vstack([np.tile(values[0], (copies, 1)), values[1:]])
    tiers = find_tiers(copied)
    assert tiers.of is not None
    assert len(set(tiers.of[:copies])) == len(set(tiers.best[:copies])) == 1
    assert (sides_of(copied, 0)[:copies] == 0).all()
    nearly = np.tile(values[0], (copies, 1)) * (1 + 1e-12 * np.arange(copies))[:, None]
    assert set(find_tiers(nearly).of or ()) == {1}


@quick
@given(arrays(np.float64, st.tuples(st.integers(5, 8), st.integers(5, 8)), elements=st.integers(0, 20).map(float)))
def test_intervals_hold_the_mean_and_both_axes_are_less_sure_than_one(table: np.ndarray) -> None:
    both = crossed_interval(table)
    assert both is not None
    assert both[0] - 1e-9 <= table.mean() <= both[1] + 1e-9
    assert table.min() - 1e-9 <= both[0] <= both[1] <= table.max() + 1e-9
    constant = mean_interval(np.full(6, table[0, 0]))
    assert constant == pytest.approx((table[0, 0], table[0, 0]))


def test_no_interval_from_few_units() -> None:
    assert mean_interval(np.arange(4.0)) is None
    assert crossed_interval(np.ones((9, 4))) is None
    assert mean_interval(np.array([1.0, 2, 3, 4, np.nan])) is None


# Simulation (the long form is tests/proofs/science/test_statistics_simulation.py) ------------------------------------


def most(repetitions: int) -> float:
    """What a true level of 5 % stays below, but for one case in a thousand."""
    return LEVEL + 3.1 * math.sqrt(LEVEL * (1 - LEVEL) / repetitions)


@pytest.mark.parametrize("world", SIMULATION["SYMMETRIC"], ids=lambda world: world.name)
def test_equal_methods_are_rarely_told_apart(world: Any) -> None:
    repetitions = 300
    found = SIMULATION["errors_of"](world, repetitions, 7)
    assert max(found.values()) <= most(repetitions), found


@pytest.mark.parametrize("pairs", [2, 3, 7])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_independent_pairs_as_compare_has_them(pairs: int, scale: float) -> None:
    repetitions = 2000
    gaps = np.random.default_rng(pairs).normal(size=(repetitions, pairs, 10))
    gaps[:, 0] *= scale
    assert (holm(moderated_t(gaps, pairs)) <= LEVEL).any(-1).mean() <= most(repetitions)


def test_pairing_cells_as_if_they_were_independent_is_no_test() -> None:
    lucky = next(world for world in SIMULATION["SYMMETRIC"] if world.own_seed)
    assert SIMULATION["error_of_cells"](lucky, 50, 7) > 0.3


def test_the_errors_of_twenty_methods_stay_at_their_level_and_effects_are_found() -> None:
    """Ranks could not find any difference among so many methods with 10 seeds."""
    repetitions, world = 150, next(world for world in SIMULATION["SYMMETRIC"] if world.name == "all of them")
    assert max(SIMULATION["errors_of"](world, repetitions, 20).values()) <= most(repetitions)
    found = {effect: SIMULATION["powers_of"](world, repetitions, 20, 10, effect) for effect in (0.0, 1.0, 2.0)}
    print(f"power with 20 methods and 10 seeds, by effect in standard deviations: {found}")
    for family in found[0.0]:
        assert found[0.0][family] < LEVEL
        assert found[0.0][family] < found[1.0][family] < found[2.0][family]
    assert found[1.0]["all pairs"] > 0.25
    assert found[1.0]["against the first"] > 0.5
    assert found[2.0]["all pairs"] > 0.9


def test_intervals_of_very_many_units_are_those_of_the_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    table = rng.gamma(1, size=(6, MANY + 1)) + rng.normal(0, 0.1, (6, 1))
    quick_ones = mean_interval(table[0]), crossed_interval(table)
    monkeypatch.setattr("oodbench.board.statistics.MANY", 2 * MANY)
    resampled = mean_interval(table[0]), crossed_interval(table)
    for quick_one, slow in zip(quick_ones, resampled, strict=True):
        assert quick_one is not None
        assert slow is not None
        assert quick_one == pytest.approx(slow, abs=0.05 * (slow[1] - slow[0]))
