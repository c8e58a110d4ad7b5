"""The simulated regression against closed forms and the published ERM errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oodbench import check_dataset
from oodbench.plugin.dataset import fingerprint
from oodbench_datasets.selection_bias import READINGS, SelectionBias, selection_probability


def test_conforms() -> None:
    check_dataset(SelectionBias)


def test_the_same_on_any_machine() -> None:
    data = SelectionBias()
    assert [fingerprint(part(0)) for part in (data.train, data.validation, data.test)] == PINNED


PINNED = ["ad5b51c661f2a61e", "c4172beeacdb7dbb", "69a049fcaa984fde"]


@pytest.mark.parametrize("reading", READINGS)
def test_moments_before_selection(reading: Any) -> None:
    z_std, v_std, beta, noise_std = READINGS[reading]
    x, y = SelectionBias(reading=reading).draw(np.random.default_rng(0), 400_000)
    covariance = np.zeros((5, 5))  # of S: 0.8 Z_i + 0.2 Z_{i+1}
    for i in range(5):
        covariance[i, i] = (0.8**2 + 0.2**2) * z_std**2
        if i < 4:
            covariance[i, i + 1] = covariance[i + 1, i] = 0.8 * 0.2 * z_std**2
    assert np.allclose(x.mean(0), 0, atol=0.02)
    assert np.allclose(np.cov(x.T)[:5, :5], covariance, atol=0.03)
    assert np.allclose(np.cov(x.T)[5:, 5:], v_std**2 * np.eye(5), atol=0.05)
    c = covariance  # E[S_j S1 S2 S3] is a sum over pairings (Isserlis)
    cubic = [c[j, 0] * c[1, 2] + c[j, 1] * c[0, 2] + c[j, 2] * c[0, 1] for j in range(5)]
    expected = covariance @ np.array(beta) + cubic
    assert np.allclose((x[:, :5] * y[:, None]).mean(0), expected, atol=0.1 * z_std**4)
    assert abs(np.var(y - x[:, :5] @ np.array(beta) - x[:, 0] * x[:, 1] * x[:, 2]) - noise_std**2) < 0.01


@given(r=st.one_of(st.floats(1.01, 4), st.floats(-4, -1.01)), y=st.floats(-20, 20), v=st.floats(-20, 20))
def test_selection_probabilities(r: float, y: float, v: float) -> None:
    probability = float(selection_probability(r, np.array([y]), np.array([v]))[0])
    assert 0 <= probability <= 1
    assert np.isclose(probability, np.exp(-5 * np.log(abs(r)) * abs(y - np.sign(r) * v)))
    mirrored = float(selection_probability(-r, np.array([y]), np.array([-v]))[0])
    assert np.isclose(probability, mirrored)
    assert float(selection_probability(r, np.array([y]), np.array([np.sign(r) * y]))[0]) == 1


@given(seed=st.integers(0, 100), r=st.sampled_from([1.5, 2.3, -1.1, -2.9]))
@settings(deadline=None, max_examples=10)
def test_selected_rows_follow_the_selection(seed: int, r: float) -> None:
    """V5 given Y, before selection N(0, 2^2), is after it proportional to that times the selection probability."""
    data = SelectionBias(majority=3000, r1=r)
    (selected, _) = data.train(seed)
    v, y = selected.x[:, -1], selected.y
    grid = np.linspace(-12, 12, 4001)
    density = np.exp(-(grid**2) / 8) * selection_probability(r, y[:300, None], grid)
    expected = (density * grid).sum(1) / density.sum(1)
    variance = (density * grid**2).sum(1) / density.sum(1) - expected**2
    standardized = (v[:300] - expected) / np.sqrt(variance)
    assert abs(standardized.mean()) < 5 / np.sqrt(300)
    assert abs(standardized.std() - 1) < 0.35


def test_what_causes_y_does_so_everywhere() -> None:
    data = SelectionBias()
    for environment in (*data.train(0), *data.test(0)):
        x, y = environment.x, environment.y
        noise = y - x[:, :5] @ np.array(READINGS["reproduces"].beta) - x[:, 0] * x[:, 1] * x[:, 2]
        assert np.std(noise) < 1.2


@pytest.mark.parametrize(("r1", "published", "spread"), [(1.5, 2.651, 0.106), (1.9, 3.155, 0.210), (2.3, 3.240, 0.174)])
def test_least_squares_has_the_published_erm_error(r1: float, published: float, spread: float) -> None:
    data = SelectionBias(r1=r1)
    errors = []
    for seed in range(10):
        train, test = data.train(seed), data.test(seed)
        x, y = np.concatenate([one.x for one in train]), np.concatenate([one.y for one in train])
        coefficients = np.linalg.lstsq(x, y, rcond=None)[0]
        errors.append(np.mean([np.mean((one.y - one.x @ coefficients) ** 2) for one in test]))
    assert abs(np.mean(errors) - published) < spread


def test_the_main_texts_noise_does_not_reproduce() -> None:
    data = SelectionBias(reading="main_text")
    train, test = data.train(0), data.test(0)
    x, y = np.concatenate([one.x for one in train]), np.concatenate([one.y for one in train])
    coefficients = np.linalg.lstsq(x, y, rcond=None)[0]
    assert np.mean([np.mean((one.y - one.x @ coefficients) ** 2) for one in test]) < 2


def test_further_groups_come_after_the_two_of_the_paper() -> None:
    plain, more = SelectionBias().train(0), SelectionBias(more_r=(1.5, -1.3)).train(0)
    assert [environment.name for environment in more] == ["r=1.9", "r=-1.1", "r=1.5", "r=-1.3"]
    assert [len(environment) for environment in more] == [2000, 200, 200, 200]
    for ours, theirs in zip(plain, more, strict=False):
        assert np.array_equal(ours.x, theirs.x)


@pytest.mark.parametrize(
    "bad", [{"r1": 1.0}, {"r2": 0.5}, {"test_r": (-1.9, -1.9)}, {"majority": 1}, {"more_r": (1.9,)}, {"more_r": (0.2,)}]
)
def test_impossible_settings(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="r1|test_r|majority|more_r"):
        SelectionBias(**bad)
