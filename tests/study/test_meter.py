"""Metrics of chosen models: which are measured, and what is said where a value is missing."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from oodbench import Environment, Linear, Recipe
from oodbench.engine.asking import probabilities_of
from oodbench.engine.fitted import FittedModel
from oodbench.engine.metric import TAKEN
from oodbench.engine.probabilities import from_signs
from oodbench.plugin import registry
from oodbench.study.meter import Meter
from oodbench.study.record import COLUMNS

X = np.array([[-1.0], [2.0], [0.5], [3.0]])
MIXED = Environment("mixed", X, np.array([0, 1, 0, 1]))
ONE_CLASS = Environment("one class", X, np.zeros(4, int))


class Hard:
    """Predicts, and has no probabilities."""

    def predict(self, x: NDArray[Any]) -> NDArray[Any]:
        return (x[:, 0] > 0).astype(int)


class Soft(Hard):
    def predict_proba(self, x: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack([1 - self.share(x), self.share(x)])

    def share(self, x: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(1 / (1 + np.exp(-x[:, 0])))


class Scores(Hard):
    def outputs(self, x: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack([np.zeros(len(x)), x[:, 0]])


def test_probabilities_come_from_predict_proba_or_the_outputs() -> None:
    expected = Soft().predict_proba(X)
    assert np.allclose(probabilities_of(Scores(), X, 2), expected)
    fitted = FittedModel(Linear(), Recipe(), 2, True, np.array([0, 0, 1, 0], np.float32))
    assert np.allclose(probabilities_of(fitted, X, 2), expected, atol=1e-6)
    already = type("Already", (Hard,), {"outputs": lambda self, x: Soft().predict_proba(x)})()
    assert np.allclose(probabilities_of(already, X, 2), expected)


def test_scores_of_a_squared_loss_estimate_two_p_minus_one() -> None:
    assert from_signs(np.array([[0.5], [-3.0]])).tolist() == [[0.25, 0.75], [1.0, 0.0]]
    assert np.allclose(from_signs(np.array([[1.0, 0.0, -1.0], [-2.0, -2.0, -2.0]])), [[2 / 3, 1 / 3, 0], [1 / 3] * 3])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (np.full((4, 3), 1 / 3), "predict_proba returned shape (4, 3); it must be (4, 2)"),
        (np.full((4, 2), np.nan), "predict_proba returned values that are not finite numbers"),
        (np.full((4, 2), 0.7), "predict_proba returned rows that are no probabilities"),
        (None, "the model gives no probabilities"),
    ],
)
def test_unusable_probabilities_cost_their_metrics_only(said: Any, reason: str) -> None:
    model = type("Odd", (Hard,), {"predict_proba": lambda self, x: said})()
    meter = Meter.of_task("classification", 2)
    values = meter.measure(model, MIXED)
    assert math.isnan(values["auc"])
    assert reason in meter.missing["auc"]
    assert values["balanced_accuracy"] == 0.75


def test_a_predictor_without_probabilities() -> None:
    meter = Meter.of_task("classification", 2)
    values = meter.measure(Hard(), MIXED)
    needing = {name for name, metric in meter.metrics.items() if metric.needs == "probabilities"}
    assert {name for name, value in values.items() if math.isnan(value)} == needing
    assert meter.missing == dict.fromkeys(needing, "the model gives no probabilities")


def test_an_environment_of_one_class_has_no_areas() -> None:
    meter = Meter.of_task("classification", 2)
    assert not meter.missing
    assert meter.measure(Soft(), MIXED)["auc"] == 1.0
    values = meter.measure(Soft(), ONE_CLASS)
    assert {name for name, value in values.items() if math.isnan(value)} == {"auc", "pr_auc"}
    assert meter.missing["auc"] == "environment 'one class': it has no row of class 1"


def test_a_regression_has_metrics_of_its_own() -> None:
    assert set(Meter.of_task("regression", 2).metrics) == {"rmse", "mae", "r2", "decile_error"}


OWN = """
import numpy as np
import oodbench

@oodbench.metric("regression", better="lower")
def median_error(y, predicted):
    '''Median absolute error.'''
    return np.median(np.abs(y - predicted))

@oodbench.metric("regression", better="higher")
def greedy(y, predicted):
    y[:] = predicted

@oodbench.metric("regression", better="higher")
def lost(y, predicted):
    return float("inf")

def plain(y, predicted):
    return 0.0
"""


def test_metrics_of_a_users_own(distribution: Callable[..., Path]) -> None:
    names = ("median_error", "greedy", "lost", "plain")
    points = "\n".join(f"{name} = own_metrics:{name}" for name in names)
    distribution("own-metrics", "own_metrics", OWN, metrics=points + "\nrows = own_metrics:median_error")
    listed = {plugin.name: plugin for plugin in registry.plugins("metric")}
    assert (listed["median_error"].summary, listed["median_error"].source) == ("Median absolute error.", "own-metrics")
    assert "is not a function with @oodbench.metric" in str(listed["plain"].broken)
    assert "a metric cannot be called 'rows'" in str(listed["rows"].broken)
    environment = Environment("a", X, np.array([1.0, 2.0, 0.0, 5.0]))
    meter = Meter.of_task("regression", 2)
    values = meter.measure(type("Zero", (), {"predict": lambda self, x: np.zeros(len(x))})(), environment)
    assert values["median_error"] == 1.5
    assert math.isnan(values["greedy"])
    assert math.isnan(values["lost"])
    assert "read-only" in meter.missing["greedy"]
    assert meter.missing["lost"] == "environment 'a': its value is inf"
    assert meter.missing["plain"].startswith("the metric is broken: ")
    assert environment.y.tolist() == [1.0, 2.0, 0.0, 5.0]


@pytest.mark.parametrize("wrong", [{"better": "more"}, {"better": "lower", "needs": "logits"}])
def test_a_metric_says_its_direction_and_what_it_needs(wrong: dict[str, Any]) -> None:
    import oodbench

    with pytest.raises(ValueError, match="a metric has"):
        oodbench.metric("regression", **wrong)(lambda y, predicted: 0.0)
    with pytest.raises(ValueError, match="the tasks of a metric"):
        oodbench.metric(better="lower")(lambda y, predicted: 0.0)


def test_no_metric_takes_the_name_of_a_column() -> None:
    assert set(COLUMNS) == TAKEN
