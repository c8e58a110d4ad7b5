"""Two bits, the discrete example of risk extrapolation, and drifting concepts, against closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from oodbench import Dataset, check_dataset
from oodbench_datasets.drift import THRESHOLDS, Drift
from oodbench_datasets.rex_toy import POSITIVE, SHARES, RexToy
from oodbench_datasets.two_bit import TwoBit


@pytest.mark.parametrize("dataset", [TwoBit, RexToy, Drift])
def test_conforms(dataset: type[Dataset]) -> None:
    check_dataset(dataset)


def test_two_bits_agree_with_y_as_often_as_they_say() -> None:
    data = TwoBit(rows=50_000)
    for environment, flips in zip([*data.train(0), *data.test(0)], (0.1, 0.2, 0.9), strict=True):
        assert np.std(environment.x - environment.x.round()) == pytest.approx(0.01, rel=0.02)
        right = environment.x.round() == (2 * environment.y - 1)[:, None]
        assert np.allclose(right.mean(0), [0.75, 1 - flips], atol=0.01)
        assert np.mean(right[:, 0] & right[:, 1]) == pytest.approx(0.75 * (1 - flips), abs=0.01)


def risk(shares: Any, positive: Any, predicted: Any) -> float:
    """The cross entropy of predicted probabilities."""
    p, q = np.array(positive), np.array(predicted)
    return float(np.dot(shares, -p * np.log(q) - (1 - p) * np.log(1 - q)))


def test_rex_toy_has_its_probabilities_and_risks() -> None:
    data = RexToy(rows=100_000)
    invariant = (0.5, 0.75, 0.5)  # what IRM is expected to find
    for environment, shares, positive in zip(data.train(0), SHARES, POSITIVE, strict=True):
        x = environment.x.round()
        assert np.std(environment.x - x) == pytest.approx(0.01, rel=0.02)
        assert np.allclose(x.mean(0), shares, atol=0.01)
        assert np.allclose(x.T @ environment.y / x.sum(0), positive, atol=0.02)
        predicted = x @ np.array(invariant)
        losses = -np.log(np.where(environment.y == 1, predicted, 1 - predicted))
        assert losses.mean() == pytest.approx(risk(shares, positive, invariant), abs=0.01)


def test_rex_toy_is_where_equal_risks_cost_what_is_invariant() -> None:
    """Only half and half everywhere has equal risks among the expected answers: V-REx gives up x=1 for it."""
    risks = {
        answer: [risk(shares, positive, answer) for shares, positive in zip(SHARES, POSITIVE, strict=True)]
        for answer in [(0.5, 0.75, 0.1 + 0.1 / 3), (0.5, 0.75, 0.5), (0.5, 0.5, 0.5)]
    }
    spreads = [np.ptp(values) for values in risks.values()]
    assert spreads[2] < 1e-12 < 0.03 < min(spreads[:2])
    assert np.allclose(risks[0.5, 0.5, 0.5], math.log(2))
    means = [np.mean(values) for values in risks.values()]
    assert means[0] < means[1] < means[2]


def test_sea_has_its_thresholds() -> None:
    """P(x1 + x2 <= t) = t^2 / 200; a tenth of the labels are wrong."""
    data = Drift(kind="sea", rows=50_000)
    environments = [*data.train(0), *data.test(0)]
    assert [environment.name for environment in environments] == ["t=0", "t=1", "t=2", "t=3"]
    for time, (environment, threshold) in enumerate(zip(environments, THRESHOLDS, strict=True)):
        share = threshold**2 / 200
        assert np.mean(environment.y) == pytest.approx(0.9 * share + 0.1 * (1 - share), abs=0.01)
        assert np.mean(data.sea(environment.x, time) == environment.y) == pytest.approx(0.9, abs=0.01)
        stale = np.mean(data.sea(environment.x, 0) != environment.y)  # of the first concept
        assert stale == pytest.approx(0.1 + 0.8 * abs(threshold**2 - 64) / 200, abs=0.01)


def test_hyperplanes_halve_the_rows_and_turn() -> None:
    data = Drift(kind="hyperplane", rows=50_000, flips=0.0)
    environments = [*data.train(0), *data.test(0)]
    stale = []
    for time, environment in enumerate(environments):
        assert np.mean(environment.y) == pytest.approx(0.5, abs=0.01)
        assert np.array_equal(data.hyperplane(environment.x, 0, time), environment.y == 1)
        stale.append(np.mean(data.hyperplane(environment.x, 0, 0) != environment.y))
    assert stale == sorted(stale)
    assert stale[-1] > 0.05


def test_friedman_keeps_its_mean_while_columns_change_roles() -> None:
    from scipy.special import sici

    data = Drift(kind="friedman", rows=50_000)
    product = (np.euler_gamma + math.log(math.pi) - sici(math.pi)[1]) / math.pi  # E sin(pi u v)
    mean = 10 * product + 20 / 12 + 5 + 2.5
    environments = [*data.train(0), *data.test(0)]
    for time, environment in enumerate(environments):
        assert np.mean(environment.y) == pytest.approx(mean, abs=0.1)
        assert np.var(environment.y - data.friedman(environment.x, time)) == pytest.approx(1, abs=0.03)
    first, last = (np.cov(environment.x.T, environment.y)[-1, :-1] for environment in environments[::3])
    assert np.allclose(first[[3, 4]], [10 / 12, 5 / 12], atol=0.05)  # slope times the variance of a uniform column
    assert np.allclose(last[[0, 2]], [10 / 12, 5 / 12], atol=0.05)
    assert np.allclose(first[5:], 0, atol=0.05)


@pytest.mark.parametrize(
    ("dataset", "bad"),
    [
        (TwoBit, {"shape_flips": 1.5}),
        (TwoBit, {"test_flips": (0.9, 0.9)}),
        (RexToy, {"test_positive": 2.0}),
        (RexToy, {"rows": 3}),
        (Drift, {"known": 4}),
        (Drift, {"flips": 0.5}),
    ],
)
def test_impossible_settings(dataset: type[Dataset], bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="flips|test_positive|rows|known"):
        dataset(**bad)
