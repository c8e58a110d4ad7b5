"""Tests and intervals: against scipy and closed forms, by properties, and by simulation where the truth is known."""

from __future__ import annotations

import runpy
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import wilcoxon

from oodbench.board.statistics import (
    LEVEL,
    crossed_interval,
    differences,
    fewest_units,
    find_tiers,
    holm,
    mean_interval,
    signed_rank,
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


def test_signed_ranks_are_scipys_row_by_row() -> None:
    found = RNG.normal(size=(4, 3, 9))
    assert np.allclose(signed_rank(found), [[wilcoxon(row).pvalue for row in some] for some in found])
    large = RNG.normal(0.2, 1, size=(2, 80))
    assert np.allclose(signed_rank(large), [wilcoxon(row).pvalue for row in large])


def test_ties_and_missing_units() -> None:
    tied = np.array([1.0, 1, 1, 1, 1, 1, -1])
    # of 128 signs, 2 * (1 + 7) have a rank sum as far out
    assert signed_rank(tied) == pytest.approx(16 / 128)
    assert signed_rank(tied) == pytest.approx(wilcoxon(tied).pvalue)
    several = np.array([[1.0, 2, 3, 4, 5, 6], [1, np.nan, 3, 4, 5, 6], [0, 0, 0, 0, 0, 0], [0, 2, 3, 4, 5, 0]])
    assert signed_rank(several) == pytest.approx([2**-5, 2**-4, 1, 2**-3])


def test_holm_by_hand() -> None:
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.5, 0.9])) == pytest.approx([1.0, 1.0])
    assert holm(np.array([[0.02], [0.2]])) == pytest.approx(np.array([[0.02], [0.2]]))


def test_too_few_units_is_when_no_outcome_could_be_significant() -> None:
    for claims in (1, 3, 6, 21, 45):
        enough = fewest_units(claims)
        clear = np.arange(1.0, enough + 1)
        assert holm(np.full(claims, signed_rank(clear)))[0] <= LEVEL
        assert holm(np.full(claims, signed_rank(clear[:-1])))[0] > LEVEL
    few = find_tiers(np.array([np.arange(5.0), 100 + np.arange(5.0)]))
    assert (few.of, few.too_few, few.units, few.needed) == (None, True, 5, 6)


def test_tiers_are_split_at_the_leader_of_each() -> None:
    noise = RNG.normal(0, 0.1, size=(6, 12))
    means = np.array([3.0, 1.0, 1.01, 5.0, 3.01, 1.02])
    assert find_tiers(means[:, None] + noise).of == (2, 1, 1, 3, 2, 1)
    assert find_tiers(np.ones((1, 9))).of is None


def test_a_mean_that_one_bad_draw_makes_is_no_win() -> None:
    """The ranks say that b is better, the mean says a: nothing is claimed for a."""
    a, b = np.linspace(1, 1.2, 10), np.linspace(0.5, 0.6, 10)
    b[3] = 100.0
    assert find_tiers(np.array([a, b])).of == (1, 1)


# Properties --------------------------------------------------------------------------------------------------------


@quick
@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_methods_and_units_does_not_matter(values: np.ndarray, random: Any) -> None:
    values = values + np.arange(len(values))[:, None] / 64  # means that are equal would leave the leader open
    methods, units = list(range(len(values))), list(range(values.shape[1]))
    random.shuffle(methods)
    random.shuffle(units)
    tiers, shuffled = find_tiers(values).of, find_tiers(values[methods][:, units]).of
    if len(np.unique(values.mean(1))) == len(values):
        assert tiers is None or shuffled == tuple(tiers[method] for method in methods)
    assert mean_interval(values[0]) == mean_interval(values[0][units])


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
    pairs = np.array(list(combinations(range(len(values)), 2))).T
    apart = [differences(some[pairs[0]], some[pairs[1]]) for some in (values, values + of_the_seeds)]
    assert np.array_equal(signed_rank(apart[0]), signed_rank(apart[1]))


@quick
@given(tables, st.integers(2, 4))
def test_identical_methods_are_never_told_apart(values: np.ndarray, copies: int) -> None:
    tiers = find_tiers(np.vstack([np.tile(values[0], (copies, 1)), values[1:]])).of
    assert tiers is None or len(set(tiers[:copies])) == 1
    nearly = np.tile(values[0], (copies, 1)) * (1 + 1e-12 * np.arange(copies))[:, None]
    found = find_tiers(nearly).of
    assert found is None or set(found) == {1}


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


# Simulation (the long form is tests/faults/test_statistics_simulation.py) -------------------------------------------


@pytest.mark.parametrize("world", SIMULATION["WORLDS"], ids=lambda world: world.name)
def test_equal_methods_are_rarely_told_apart(world: Any) -> None:
    repetitions = 600
    found = SIMULATION["errors_of"](world, np.random.default_rng(7), repetitions, 4)
    most = LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / repetitions)
    assert found["over seeds"] <= most
    assert found["over environments"] <= most
    if world.own_seed:  # pairing cells as if they were independent is not a test at all
        assert found["cells as pairs"] > 0.3


def test_known_effects_are_found() -> None:
    rng = np.random.default_rng(8)
    found = {effect: SIMULATION["power"](rng, 300, 4, 10, effect) for effect in (0.0, 1.0, 2.0)}
    print(f"power with 4 methods and 10 seeds, by effect in standard deviations: {found}")
    assert found[0.0] < LEVEL
    assert found[0.0] < found[1.0] < found[2.0]
    assert found[2.0] > 0.8
