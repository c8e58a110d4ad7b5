"""The simulated classification against Bayes rules in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from oodbench import check_dataset
from oodbench.plugin.dataset import fingerprint
from oodbench_datasets.spurious_correlation import READINGS, SpuriousCorrelation


def test_conforms() -> None:
    check_dataset(SpuriousCorrelation)


def test_the_same_on_any_machine() -> None:
    data = SpuriousCorrelation()
    assert [fingerprint(part(0)) for part in (data.train, data.validation, data.test)] == PINNED


PINNED = ["f43c576c5059ac89", "6a4f982edc305695", "353f190e8e545b51"]


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("d", [5, 10])
def test_bayes_rules(reading: Any, d: int) -> None:
    """S alone is right with probability Phi(sqrt(d) / sigma_s); V alone finds A, and is right as often as A = Y."""
    sigma_s, sigma_v = READINGS[reading]
    data = SpuriousCorrelation(d=d, reading=reading, group_rows=100_000, r2=0.75)
    for environment, r in zip(data.train(0), (0.9, 0.75), strict=True):
        by_s = (environment.x[:, :d].sum(1) > 0) == environment.y
        by_v = (environment.x[:, d:].sum(1) > 0) == environment.y
        finds_a = norm.cdf(np.sqrt(d) / sigma_v)
        assert abs(by_s.mean() - norm.cdf(np.sqrt(d) / sigma_s)) < 0.005
        assert abs(by_v.mean() - (r * finds_a + (1 - r) * (1 - finds_a))) < 0.005


@pytest.mark.parametrize(("d", "ceiling"), [(5, 0.772), (10, 0.854)])
def test_the_invariant_ceiling(d: int, ceiling: float) -> None:
    assert round(float(norm.cdf(np.sqrt(d) / READINGS["reproduces"][0])), 3) == ceiling


def test_moments() -> None:
    data = SpuriousCorrelation(test_rows=200_000)
    (test,) = data.test(0)
    sign = 2.0 * test.y - 1
    assert np.allclose((test.x[:, :5] * sign[:, None]).mean(0), 1, atol=0.03)
    assert np.allclose((test.x[:, 5:] * sign[:, None]).mean(0), -1, atol=0.01)
    assert np.allclose((test.x[:, :5] - sign[:, None]).std(0), 3.0, atol=0.03)
    assert np.allclose((test.x[:, 5:] + sign[:, None]).std(0), 0.3, atol=0.01)
    assert abs(test.y.mean() - 0.5) < 0.01


@pytest.mark.parametrize("bad", [{"r1": 1.1}, {"r3": -0.1}, {"d": 0}])
def test_impossible_settings(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="r1|d"):
        SpuriousCorrelation(**bad)
