"""Stability against closed forms: Gaussian mechanisms, finite tables, and sub-populations that were planted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from oodbench import Environment
from oodbench.errors import InvalidSetting, TrainingFailed
from oodbench.kit.stability import (
    describe,
    distributional_stability,
    exact_stability,
    ood_stability,
    shares_from,
    worst_subpopulation,
)


class FirstColumn:
    """Predicts the first column; class numbers where that holds class numbers."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        return x[:, 0]


@dataclass
class Says(FirstColumn):
    """A classifier with outputs of its own."""

    say: Callable[[np.ndarray], np.ndarray]

    def outputs(self, x: np.ndarray) -> np.ndarray:
        return self.say(x)


def rows(x: np.ndarray, y: np.ndarray) -> Environment:
    return Environment("rows", x.reshape(len(y), -1), y)


def random_rows(seed: int, classes: int, count: int = 200) -> Environment:
    """classes = 1: regression with heteroscedastic noise; more: classes that depend on the columns."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 3))
    if classes == 1:
        return rows(x, x[:, 0] + rng.normal(size=count) * np.exp(x[:, 1]))
    return rows(x, np.argmax(x @ rng.normal(size=(3, classes)) + rng.gumbel(size=(count, classes)), axis=1))


def of(environment: Environment, alpha0: float) -> float:
    return distributional_stability(Says(lambda x: x[:, :2]), environment, alpha0)


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 3]), st.floats(0.005, 0.5), st.floats(0.005, 0.5))
@settings(max_examples=25, deadline=None)
def test_not_negative_and_no_larger_for_a_larger_alpha0(seed: int, classes: int, a: float, b: float) -> None:
    environment = random_rows(seed, classes)
    small, large = of(environment, min(a, b)), of(environment, max(a, b))
    assert 0 <= large <= small + 1e-9
    assert np.isfinite(small)


# Closed forms of the distributional stability


def normal_band(alpha: float) -> float:
    """sup over the bands of mass alpha of KL between the Gaussian with a band's moments and the standard normal.

    Where q is narrower than p the likelihood ratio has one maximum, so that the best rows are a band of y.
    """
    lower = np.linspace(0, 1 - alpha, 2001)
    a, b = norm.ppf(lower), norm.ppf(np.minimum(lower + alpha, 1))
    mean = (norm.pdf(a) - norm.pdf(b)) / alpha
    square = 1 + (np.clip(a, -9, 9) * norm.pdf(a) - np.clip(b, -9, 9) * norm.pdf(b)) / alpha
    return float(np.max((square - 1 - np.log(square - mean**2)) / 2))


@pytest.mark.parametrize("alpha0", [0.05, 0.1, 0.2, 0.5])
def test_gaussian_noise_around_a_constant_prediction(alpha0: float) -> None:
    y = norm.ppf((np.arange(4000) + 0.5) / 4000)
    found = distributional_stability(FirstColumn(), rows(np.ones(4000), y), alpha0)
    tail = norm.pdf(norm.isf(alpha0)) / alpha0
    of_tail = (norm.isf(alpha0) * tail - np.log(1 + norm.isf(alpha0) * tail - tail**2)) / 2
    assert found >= of_tail
    assert found == pytest.approx(normal_band(alpha0), rel=0.02)


def test_two_mechanisms_far_apart() -> None:
    """One row in five has y = -x rather than x, exactly: the slope of all is 0.6, the minority's noise at its floor."""
    x = np.tile([-1.0, 1.0], 500)
    minority = np.arange(1000) % 5 == 0
    worst = worst_subpopulation(FirstColumn(), rows(x, np.where(minority, -x, x)), 0.2)
    noise = 0.2 * 1.6**2 + 0.8 * 0.4**2
    assert worst.inside[minority].sum() == pytest.approx(1)
    assert worst.divergence == pytest.approx(np.log(100) + 1.6**2 / noise / 2, rel=1e-4)
    assert worst.share == 0.2


@given(st.sampled_from([0.05, 0.1, 0.2, 0.3, 0.5]), st.integers(30, 570))
@settings(max_examples=20, deadline=None)
def test_two_classes_and_a_constant_prediction(alpha0: float, ones: int) -> None:
    """KL between Bernoullis is convex: the worst share has as much of one class as there is."""
    y = (np.arange(600) < ones).astype(int)
    p = ones / 600
    most, least = min(p / alpha0, 1), max(1 - (1 - p) / alpha0, 0)
    expected = max(bernoulli(most, p), bernoulli(least, p))
    assert distributional_stability(FirstColumn(), rows(np.zeros(600), y), alpha0) == pytest.approx(expected, abs=0.01)


def bernoulli(q: float, p: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nansum([q * np.log(q / p), (1 - q) * np.log((1 - q) / (1 - p))]))


def table_divergence(q: np.ndarray, p: np.ndarray) -> float:
    """sum over phi of Q(phi) KL(Q(y | phi) || P(y | phi)) for tables [phi, y]."""
    pairs = [(row, ref) for row, ref in zip(q, p, strict=True) if row.sum() > 0]
    return float(sum(row.sum() * bernoulli(row[1] / row.sum(), ref[1] / ref.sum()) for row, ref in pairs))


def table_rows(counts: np.ndarray) -> Environment:
    phi, y = (np.repeat(cell.ravel(), counts.ravel()) for cell in np.indices(counts.shape))
    return rows(phi.astype(float), y)


def table_supremum(counts: np.ndarray, alpha0: float) -> float:
    """The divergence is convex in the table of Q, so the worst fills one cell after the other in some order."""
    p = counts / counts.sum()
    best = 0.0
    for order in itertools.permutations(range(4)):
        q, left = np.zeros(4), 1.0
        for cell in order:
            q[cell] = min(left, p.ravel()[cell] / alpha0)
            left -= q[cell]
        best = max(best, table_divergence(q.reshape(2, 2), p))
    return best


@given(st.lists(st.integers(25, 200), min_size=4, max_size=4), st.sampled_from([0.1, 0.2, 0.4]))
@settings(max_examples=25, deadline=None)
def test_two_predicted_classes_and_two_classes_have_a_known_supremum(cells: list[int], alpha0: float) -> None:
    counts = np.array(cells).reshape(2, 2)
    found, supremum = (
        distributional_stability(FirstColumn(), table_rows(counts), alpha0),
        table_supremum(counts, alpha0),
    )
    assert 0.7 * supremum <= found <= supremum + 0.01


def test_the_search_mostly_finds_the_supremum() -> None:
    rng = np.random.default_rng(0)
    ratios = []
    for alpha0 in (0.1, 0.2, 0.4):
        for counts in rng.integers(25, 200, (10, 2, 2)):
            found = distributional_stability(FirstColumn(), table_rows(counts), alpha0)
            ratios.append(found / table_supremum(counts, alpha0))
    assert np.mean(ratios) > 0.97
    assert np.mean(np.array(ratios) > 0.99) > 0.8


def test_an_exact_model_has_what_noise_alone_brings() -> None:
    """Y is what the model predicts plus noise: both are the same but for the draw, and larger on fewer rows."""
    values = []
    for count in (100, 1_000, 10_000):
        rng = np.random.default_rng(count)
        x = rng.normal(size=(count, 1))
        environment = Environment("exact", x, x[:, 0] + rng.normal(size=count))
        exact = exact_stability(FirstColumn(), environment)
        assert distributional_stability(FirstColumn(), environment) == pytest.approx(exact, rel=0.2)
        values.append(exact)
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(2.13, rel=0.08)  # the supremum over bands of Gaussian noise, and some search


def test_a_mechanism_far_from_that_of_all_rows_is_found() -> None:
    """A fifth of the rows is on another line, across: starts near the line of all rows alone do not find it."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 1))
    y = np.where(rng.random(300) < 0.2, 2 - 2 * x[:, 0] + 0.02 * rng.normal(size=300), x[:, 0] + rng.normal(size=300))
    environment = Environment("two lines", x, y)
    worst = worst_subpopulation(FirstColumn(), environment, 0.1)
    assert worst.divergence > exact_stability(FirstColumn(), environment, 0.1) + 0.5


# Closed forms of the out-of-distribution stability


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(0.2, 3))
@settings(max_examples=20, deadline=None)
def test_ods_of_two_linear_gaussian_mechanisms(shift: float, slope: float, noise: float) -> None:
    """phi and noise in all combinations, so that the fits are exact."""
    phi, sign = (grid.ravel() for grid in np.meshgrid([-1.0, 0.0, 1.0, 4.0], [-1.0, 1.0]))
    train = rows(phi, 1 + 2 * phi + 0.5 * sign)
    test = rows(phi + 1, shift + slope * (phi + 1) + noise * sign)
    gap = np.mean((shift - 1 + (slope - 2) * (phi + 1)) ** 2)
    expected = np.log(0.5 / noise) + (noise**2 + gap) / (2 * 0.5**2) - 0.5
    assert ood_stability(FirstColumn(), train, test) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_ods_of_two_bernoulli_tables() -> None:
    train, test = np.array([[400, 100], [250, 250]]), np.array([[30, 70], [20, 180]])
    expected = table_divergence(test / test.sum(), train / train.sum())
    found = ood_stability(FirstColumn(), table_rows(train), table_rows(test))
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_ods_of_an_environment_from_itself_is_zero(classes: int) -> None:
    environment = random_rows(3, classes)
    assert ood_stability(Says(lambda x: x), environment, environment) == pytest.approx(0, abs=1e-6)


# What must not matter


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 3]))
@settings(max_examples=10, deadline=None)
def test_the_order_of_rows_does_not_matter(seed: int, classes: int) -> None:
    environment = random_rows(seed, classes)
    order = np.random.default_rng(seed).permutation(len(environment))
    shuffled = rows(environment.x[order], environment.y[order])
    one, other = (worst_subpopulation(Says(lambda x: x[:, :2]), data) for data in (environment, shuffled))
    assert other.divergence == pytest.approx(one.divergence, abs=1e-4)
    assert np.abs(other.inside - one.inside[order]).sum() < 0.05


@pytest.mark.parametrize("classes", [2, 3])
def test_recoding_the_outputs_does_not_matter(classes: int) -> None:
    environment = random_rows(5, classes)
    recode = np.array([[2.0, -1.0], [30.0, 4.0]])
    plain = distributional_stability(Says(lambda x: x[:, :2]), environment)
    recoded = distributional_stability(Says(lambda x: 1000 + x[:, :2] @ recode), environment)
    repeated = distributional_stability(Says(lambda x: x[:, [0, 1, 1, 0]]), environment)
    assert recoded == pytest.approx(plain, abs=1e-4)
    assert repeated == pytest.approx(plain, abs=1e-4)


def test_recoding_the_prediction_or_y_does_not_matter() -> None:
    environment = random_rows(5, 1)
    plain = distributional_stability(FirstColumn(), environment)
    for x, y in ((5000 - 3 * environment.x, environment.y), (environment.x, 7 + 1e6 * environment.y)):
        assert distributional_stability(FirstColumn(), rows(x, y)) == pytest.approx(plain, abs=1e-4)


# What is found and said


@pytest.mark.parametrize("classification", [False, True])
def test_a_planted_minority_is_found_and_described(classification: bool) -> None:
    """One row in ten follows the opposite rule, and differs in the column `region`."""
    rng = np.random.default_rng(1)
    minority = np.arange(1000) < 100
    x = np.column_stack([rng.normal(size=1000), rng.normal(size=1000), minority ^ (rng.random(1000) < 0.05)])
    signal = x[:, 0] * np.where(minority, -3, 3) + 0.1 * rng.normal(size=1000)
    environment = rows(x, (signal > 0).astype(int) if classification else signal)
    model = Says(lambda x: np.column_stack([-x[:, 0], x[:, 0]]))
    worst = worst_subpopulation(model, environment, 0.1)
    assert worst.inside[minority].sum() > 0.8
    described = describe(model, environment, worst, ["signal", "nothing", "region"])
    first = described.columns[0]
    assert (first.column, first.kind) == ("region", "share")
    assert first.inside > 0.7 > 0.2 > first.outside
    assert described.rows == pytest.approx(100)
    assert described.error_inside > 2 * described.error_outside or classification
    for one, values in ((first, x[:, 2]), (described.y[-1], environment.y)):
        assert 0.1 * one.inside + 0.9 * one.outside == pytest.approx(values.mean())


def test_more_stable_is_the_model_without_the_feature_that_turns() -> None:
    """In a tenth of the rows the second column agrees with y the other way round."""
    rng = np.random.default_rng(2)
    y = rng.normal(size=4000)
    turn = np.where(np.arange(4000) % 10 == 0, -1, 1)
    environment = rows(np.column_stack([y + rng.normal(size=4000), turn * y + 0.2 * rng.normal(size=4000)]), y)

    class SecondColumn:
        def predict(self, x: np.ndarray) -> np.ndarray:
            return x[:, 1]

    assert distributional_stability(SecondColumn(), environment) > 1.5 * distributional_stability(
        FirstColumn(), environment
    )


# Where there is nearly nothing to measure


@pytest.mark.parametrize("count", [1, 2, 3, 19, 20])
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_few_rows_give_finite_values(count: int, classes: int) -> None:
    environment = random_rows(0, classes, 20)
    few = rows(environment.x[:count], environment.y[:count])
    assert 0 <= of(few, 0.01) < 10
    assert 0 <= ood_stability(FirstColumn(), environment, few) < 1e6


def test_exact_fits_and_constants_are_perfectly_stable() -> None:
    x = np.random.default_rng(0).normal(size=500)
    one = np.ones(500)
    assert distributional_stability(FirstColumn(), rows(x, 3 * x + 1)) == pytest.approx(0, abs=1e-3)
    assert distributional_stability(FirstColumn(), rows(x, one)) == 0
    assert distributional_stability(FirstColumn(), rows(one, one.astype(int))) == pytest.approx(0, abs=2e-3)
    assert distributional_stability(Says(lambda x: x), rows(x, (x > 0).astype(int))) < 0.2


def test_rows_that_can_be_fitted_exactly_meet_the_noise_floor() -> None:
    y = np.concatenate([np.zeros(500), np.random.default_rng(0).normal(size=500)])
    assert np.log(100) - 0.5 < distributional_stability(FirstColumn(), rows(np.ones(1000), y)) < np.log(100) + 1


@pytest.mark.parametrize("alpha0", [0, -0.1, 0.51, 2, float("nan")])
def test_alpha0_must_be_the_share_of_a_minority(alpha0: float) -> None:
    with pytest.raises(InvalidSetting, match=r"It must be in \(0, 0.5\]"):
        distributional_stability(FirstColumn(), random_rows(0, 1), alpha0)


def test_shares_are_preferred_numbers_with_enough_rows() -> None:
    assert shares_from(0.1, 1000) == [0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5]
    assert shares_from(0.09, 1000) == shares_from(0.1, 1000)
    assert shares_from(0.011, 10**6)[:3] == [0.012, 0.015, 0.02]
    assert shares_from(0.001, 100)[0] == 0.1
    assert shares_from(0.01, 5) == shares_from(0.5, 1000) == [0.5]


def test_a_model_that_says_nothing_usable() -> None:
    environment = random_rows(0, 2)
    says: tuple[Callable[[Any], Any], ...] = (
        lambda x: x * np.nan, lambda x: x[:, 0], lambda x: x[:5], lambda x: 1 / 0,
    )  # fmt: skip
    for say in says:
        with pytest.raises(TrainingFailed):
            distributional_stability(Says(say), environment)
