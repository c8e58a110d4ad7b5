from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge

from oodbench.kit import fit_logistic, fit_ridge


def rows(seed: int, count: int = 80) -> tuple[NDArray[np.float64], np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 4)) * [1, 5, 0.1, 1] + [0, 3, 0, -1], rng


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-3, 10))
def test_ridge_is_scikit_learns_on_columns_of_variance_one(seed: int, penalty: float) -> None:
    x, rng = rows(seed)
    y, weights = x @ [1, -1, 2, 0] + rng.normal(size=len(x)), rng.uniform(0.1, 2, len(x))
    means = np.average(x, axis=0, weights=weights)
    scales = np.sqrt(np.average((x - means) ** 2, axis=0, weights=weights))
    theirs = Ridge(alpha=penalty * weights.sum()).fit((x - means) / scales, y, weights)
    (ours,) = fit_ridge(x, y[None], penalty, weights)
    assert np.allclose(ours[:-1], theirs.coef_ / scales, rtol=1e-6, atol=1e-8)
    assert np.allclose(x @ ours[:-1] + ours[-1], theirs.predict((x - means) / scales))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-3, 10), st.integers(2, 4))
def test_logistic_regression_is_scikit_learns(seed: int, penalty: float, classes: int) -> None:
    x, rng = rows(seed)
    y, weights = np.arange(len(x)) % classes, rng.uniform(0.1, 2, len(x))
    means = np.average(x, axis=0, weights=weights)
    scales = np.sqrt(np.average((x - means) ** 2, axis=0, weights=weights))
    scaled = (x - means) / scales
    # with two classes scikit-learn has one vector of coefficients: the difference of ours, which are opposite
    strength = penalty if classes > 2 else penalty / 2
    theirs = LogisticRegression(C=1 / (strength * weights.sum()), tol=1e-10, max_iter=5000).fit(scaled, y, weights)
    ours = fit_logistic(x, y, classes, penalty, weights)
    logits = x @ ours[:, :-1].T + ours[:, -1]
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert np.allclose(probabilities, theirs.predict_proba(scaled), atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_pulled_logistic_regression_is_where_its_slope_is_zero(classes: int) -> None:
    x, rng = rows(1)
    y, weights = rng.integers(0, classes, len(x)), rng.uniform(0.1, 2, len(x))
    toward, penalty = rng.normal(size=(classes, 5)), 0.3

    def objective(flat: NDArray[np.float64]) -> float:
        coefficients = flat.reshape(classes, 5)
        logits = x @ coefficients[:, :-1].T + coefficients[:, -1]
        losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(y)), y]
        return float(np.average(losses, weights=weights) + penalty / 2 * ((coefficients - toward) ** 2).sum())

    found = fit_logistic(x, y, classes, penalty, weights, toward).ravel()
    for place in range(len(found)):
        step = 1e-5 * np.eye(len(found))[place]
        assert abs(objective(found + step) - objective(found - step)) / 2e-5 < 1e-5


def test_constant_columns_and_separable_classes_have_a_solution() -> None:
    x = np.column_stack([np.ones(40), np.linspace(-1, 1, 40)])
    y = (x[:, 1] > 0).astype(int)
    found = fit_logistic(x, y, 2, 1e-3)
    assert np.isfinite(found).all()
    assert ((x @ found[:, :-1].T + found[:, -1]).argmax(1) == y).all()
    (slope,) = fit_ridge(x, x[None, :, 1] * 3, 0.0)
    assert slope[1] == pytest.approx(3)


def test_rounding_of_the_loss_stops_no_fit() -> None:
    """Close to the solution, a step gains less than the rounding of a sum over rows; one fit in 400 had no end."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        x, times = rng.normal(size=(80, 2)), rng.permutation(np.resize([1, 2, 3, 4], 80))
        y = (x[:, 0] + rng.normal(size=80) > (times > 2)).astype(int)
        x, y = x.repeat(times, 0), y.repeat(times)
        found = fit_logistic(x, y, 2, 1 / (200 * 17.36))
        logits = x @ found[:, :-1].T + found[:, -1]
        likely = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
        deviation = x.std(0)
        slope = ((likely - y)[:, None] * x / deviation).mean(0) + found[1, :-1] * deviation / (200 * 17.36)
        assert np.abs(slope).max() < 1e-8
