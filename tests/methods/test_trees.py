"""Gradient boosting of scikit-learn and of three optional libraries, by one table of cases."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from oodbench import Method, Predictor, TrainingRows, check_method
from oodbench.kit import EstimatorModel
from oodbench_methods.catboost import CatBoost
from oodbench_methods.hist_gb import HistGB
from oodbench_methods.lightgbm import LightGBM
from oodbench_methods.xgboost import XGBoost

LIBRARIES = {HistGB: "sklearn", XGBoost: "xgboost", LightGBM: "lightgbm", CatBoost: "catboost"}
TREES = [
    pytest.param(
        method,
        marks=pytest.mark.skipif(
            import_module("importlib.util").find_spec(library) is None, reason=f"{library} is an extra, not installed"
        ),
    )
    for method, library in LIBRARIES.items()
]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))


def defaults(method: type[Method], **other: Any) -> dict[str, Any]:
    return {name: dimension.default for name, dimension in method.space.items()} | other


@pytest.mark.parametrize("method", TREES)
def test_conforms(method: type[Method], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module(method.__module__), "ROUNDS", 30)  # small learning rates would take them all
    check_method(method)


@pytest.mark.parametrize("method", TREES)
def test_finds_what_no_linear_model_can_and_stops_early(method: type[Method]) -> None:
    y = np.sign(X[:, 0] * X[:, 1]) + 0.1 * RNG.normal(size=400)
    model = method().fit(TrainingRows(X, y, "regression", 2), defaults(method), 1)
    fresh = RNG.normal(size=(400, 3))
    assert np.mean((model.predict(fresh) - np.sign(fresh[:, 0] * fresh[:, 1])) ** 2) < 0.25


@pytest.mark.parametrize("method", TREES)
@pytest.mark.parametrize("classes", [[0, 1], [0, 2], [0, 1, 3]])
def test_a_stored_model_says_the_same_also_where_classes_are_missing(method: type[Method], classes: list[int]) -> None:
    y = np.array(classes)[np.digitize(X[:, 0], np.linspace(-0.5, 0.5, len(classes) - 1))]
    rows = TrainingRows(X, y, "classification", 4)
    model = method().fit(rows, defaults(method), 1)
    assert isinstance(model, EstimatorModel)
    assert np.mean(model.predict(X) == y) > 0.9
    again = EstimatorModel.restore(model.arrays(), model.about())
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.outputs(X), model.outputs(X))
    assert again.outputs(X).shape == (400, 4)
    assert np.allclose(again.outputs(X).sum(1), 1, atol=1e-5)
    assert np.allclose(model.losses(X, y), -np.log(model.outputs(X)[np.arange(400), y]), atol=1e-5)


@pytest.mark.parametrize("method", TREES)
def test_weights_make_environments_and_classes_count_alike(method: type[Method]) -> None:
    environment = (np.arange(400) < 40).astype(int)
    y = np.where(environment == 1, 1.0, 0.0)  # and nothing to tell the environments apart by
    rows = TrainingRows(np.arange(400.0)[:, None] % 2, y, "regression", 2, environment)
    equal = method().fit(rows, defaults(method, weights="environment"), 1).predict(rows.x)
    assert equal == pytest.approx(0.5, abs=0.05)
    assert method().fit(rows, defaults(method), 1).predict(rows.x) == pytest.approx(0.1, abs=0.05)
    labels = TrainingRows(rows.x, environment, "classification", 2)
    by_class = method().fit(labels, defaults(method, weights="class"), 1)
    assert isinstance(by_class, EstimatorModel)
    assert by_class.outputs(rows.x)[:, 1] == pytest.approx(0.5, abs=0.05)


def said(model: Predictor) -> np.ndarray:
    """Where x is 0, and where it is 1: the value, or the probability of class 1."""
    assert isinstance(model, EstimatorModel)
    return model.outputs(np.array([[0.0], [1.0]]))[:, -1]


@pytest.mark.parametrize("method", TREES)
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_row_of_weight_three_is_three_rows(method: type[Method], task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    x, times = rng.integers(0, 2, (200, 1)).astype(float), rng.integers(1, 5, 200)
    y = x[:, 0] + rng.normal(size=200)
    y = y if task == "regression" else (y > 0.5).astype(int)
    held = np.arange(200) % 5 == 0
    weighted = TrainingRows(x, y, task, 2, weights=times.astype(float))
    repeated = TrainingRows(x.repeat(times, 0), y.repeat(times), task, 2)
    stopping = {200: held, times.sum(): held.repeat(times)}  # the same rows, by how many there are
    monkeypatch.setattr("oodbench.kit.parts.hold_out", lambda train, share, entropy: stopping[len(train)])
    exact = {"subsample": 1.0, "l2_leaf_reg": 1e-4}  # CatBoost multiplies its penalty by the mean weight
    values = defaults(method, **{name: value for name, value in exact.items() if name in method.space})
    unweighted = replace(weighted, weights=None)
    one, other, different = (said(method().fit(rows, values, 1)) for rows in (weighted, repeated, unweighted))
    np.testing.assert_allclose(one, other, rtol=1e-4)
    assert np.abs(one - different).max() > 0.02


@pytest.mark.parametrize("method", TREES)
def test_trained_twice_the_errors_of_the_first_time_count_more(method: type[Method]) -> None:
    """Where x is 0, one row in ten is of class 1; where it is 1, eight in ten are. The rarer class is the error."""
    x = (np.arange(2000) >= 1000).astype(float)
    y = np.where(x == 0, np.arange(2000) % 10 < 1, np.arange(2000) % 10 < 8).astype(int)
    rows = TrainingRows(x[:, None], y, "classification", 2)
    assert said(method().fit(rows, defaults(method), 1)) == pytest.approx([0.1, 0.8], abs=0.03)
    twice = said(method().fit(rows, defaults(method, weights="jtt", upweight=3.0), 1))
    assert twice == pytest.approx([0.3 / (0.9 + 0.3), 0.8 / (0.8 + 0.6)], abs=0.03)


@pytest.mark.parametrize("method", TREES)
def test_weights_make_classes_within_environments_count_alike(method: type[Method]) -> None:
    """Environment 0 has 900 rows of class 0 and 300 of 1, environment 1 has 100 and 700; x is whether they differ."""
    environment, y = np.repeat([0, 0, 1, 1], [900, 300, 100, 700]), np.repeat([0, 1, 0, 1], [900, 300, 100, 700])
    rows = TrainingRows((environment != y).astype(float)[:, None], y, "classification", 2, environment)
    expected = {
        "both": [0.5, 0.5],
        "class": [7 / 16, 3 / 4],
        "environment": [700 / 800 / (700 / 800 + 900 / 1200), 300 / 1200 / (300 / 1200 + 100 / 800)],
    }
    for weights, shares in expected.items():
        model = method().fit(rows, defaults(method, weights=weights), 1)
        assert said(model) == pytest.approx(shares, abs=0.03), weights
