"""Scores of predictors in one environment, alone and together."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics
from sklearn.metrics import f1_score

from oodbench import Environment, Linear, Mlp, Recipe
from oodbench.engine.data import Task
from oodbench.engine.fitted import CHUNK_ROWS, FittedModel, linear_model
from oodbench.engine.models import Model
from oodbench.engine.said import MANY, Said, answer_together
from oodbench.engine.scoring import f1, score, score_together
from oodbench.errors import TrainingFailed

Loss = Literal["auto", "squared", "cross_entropy"]


class Says:
    def __init__(self, values: object) -> None:
        self.values = values

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.values)


@given(classes=st.integers(2, 4), data=st.data())
def test_f1_is_scikit_learns(classes: int, data: st.DataObject) -> None:
    labels = arrays(np.int64, 20, elements=st.integers(0, classes - 1))
    y, predicted = data.draw(labels), data.draw(labels)
    options = {"average": "binary"} if classes == 2 else {"average": "macro", "labels": list(range(classes))}
    assert np.isclose(f1(y, predicted, classes), f1_score(y, predicted, zero_division=0, **options))


def test_regression_error_is_the_mean_square() -> None:
    environment = Environment("a", np.zeros((2, 1)), np.array([1.0, 3.0]))
    assert score(Says([0.0, 0.0]), environment, "regression", 2) == {"error": 5.0, "loss": 5.0}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([0.0], "shape"),
        ([[0.0, 1.0]], "shape"),
        ([np.nan, 0.0], "not finite"),
        (["a", "b"], "not real numbers"),
        ([1e200, 0.0], "loss is not finite"),
    ],
)
def test_predictions_that_cannot_be(values: object, reason: str) -> None:
    environment = Environment("a", np.zeros((2, 1)), np.array([1.0, 3.0]))
    with pytest.raises(TrainingFailed, match=reason):
        score(Says(values), environment, "regression", 2)


@pytest.mark.parametrize("values", [[0, 2], [0, -1], [0.5, 1.0]])
def test_classes_that_are_none(values: list[float]) -> None:
    environment = Environment("a", np.zeros((2, 1)), np.array([0, 1]))
    with pytest.raises(TrainingFailed, match="is not a class from 0 to 1"):
        score(Says(values), environment, "classification", 2)


def fitted(family: Model, recipe: Recipe, classes: int, count: int) -> list[FittedModel]:
    rng = np.random.default_rng(0)
    outputs = recipe.outputs(classes > 1, classes)
    size = family.parameter_count(3, outputs)
    return [
        FittedModel(family, recipe, outputs, classes > 1, rng.normal(size=size).astype(np.float32))
        for _ in range(count)
    ]


@pytest.mark.parametrize("family", [Linear(), Mlp(width=(8, 4)), Mlp(width=(600,))], ids=str)
@pytest.mark.parametrize(
    ("classes", "loss"), [(1, "auto"), (2, "cross_entropy"), (2, "squared"), (3, "cross_entropy"), (3, "squared")]
)
def test_models_score_together_on_any_number_of_threads_as_they_do_alone(
    family: Model, classes: int, loss: Loss
) -> None:
    rng = np.random.default_rng(1)
    rows = 3 * CHUNK_ROWS + 7
    y = rng.integers(0, classes, rows) if classes > 1 else rng.normal(size=rows)
    environment = Environment("a", rng.normal(size=(rows, 3)), y)
    task: Task = "classification" if classes > 1 else "regression"
    models = fitted(family, Recipe(loss=loss), classes, 3)
    alone = [score(model, environment, task, classes) for model in models]
    together = score_together([models[0], Says(y), *models[1:]], environment, task, classes, threads=2)
    assert [together[0], *together[2:]] == alone  # to the last bit
    for model, found in zip(models, alone, strict=True):
        predicted = model.predict(environment.x)
        assert found["loss"] == pytest.approx(model.losses(environment.x, y).mean())
        if classes > 1:
            assert found["accuracy"] == np.mean(predicted == y)
            assert found["f1"] == f1(y, predicted, classes)
        else:
            assert found["error"] == pytest.approx(np.mean((predicted - y) ** 2))


def test_a_model_that_diverged_does_not_touch_the_others() -> None:
    good, bad = fitted(Linear(), Recipe(), 2, 2)
    bad = FittedModel(bad.model, bad.recipe, bad.width, True, np.full_like(bad.parameters, np.nan))
    environment = Environment("a", np.ones((5, 3)), np.array([0, 1, 0, 1, 1]))
    first, second = score_together([bad, good], environment, "classification", 2)
    assert isinstance(first, TrainingFailed)
    assert second == score(good, environment, "classification", 2)


@pytest.mark.parametrize(("classes", "loss"), [(1, "auto"), (2, "cross_entropy"), (3, "squared")])
def test_models_say_of_many_small_environments_at_once_what_they_say_of_each(classes: int, loss: Loss) -> None:
    rng = np.random.default_rng(2)
    task: Task = "classification" if classes > 1 else "regression"
    (model,) = fitted(Mlp(width=(8,)), Recipe(loss=loss), classes, 1)
    small = [
        Environment(
            f"e{number}",
            rng.normal(size=(number % 5 + 1, 3)),
            rng.integers(0, classes, number % 5 + 1) if classes > 1 else rng.normal(size=number % 5 + 1),
        )
        for number in range(MANY + 1)
    ]
    other = Says(small[0].y)
    answered = answer_together([model, other], small)
    assert [environment for environment, _ in answered] == small
    for environment, (said, same) in answered:
        assert isinstance(said, Said)
        assert same is other
        assert score(said, environment, task, classes) == pytest.approx(
            score(model, environment, task, classes), rel=1e-4, abs=1e-6
        )
        if classes > 1:
            np.testing.assert_allclose(said.predict_proba(small[0].x), model.predict_proba(environment.x), rtol=1e-5)
    few = answer_together([model], small[:MANY])
    assert all(answering == [model] for _, answering in few)


@pytest.mark.parametrize("of_target", [False, True])
def test_a_row_that_nothing_can_be_computed_with_is_no_fault_of_the_training(of_target: bool) -> None:
    (model,) = fitted(Linear(), Recipe(), 1, 1)
    x, y = np.ones((5, 3)), np.ones(5)
    (y if of_target else x[:, 1])[2] = 1e300
    for predictor in (model, Says(np.full(5, np.inf))):
        with pytest.raises(TrainingFailed, match=r"row 3 of environment 'late' has 1e\+300, too large to compute with"):
            score(predictor, Environment("late", x, y), "regression", 2)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_weights_of_rows_are_sample_weights(task: Task) -> None:
    """Of a trained model, which is scored chunk by chunk, and of any other predictor."""
    rng = np.random.default_rng(3)
    x, weights = rng.normal(size=(5000, 2)), rng.uniform(1e-4, 1e-2, 5000)
    y = rng.normal(size=5000) if task == "regression" else rng.integers(0, 3, 5000)
    model = linear_model(rng.normal(size=(1 if task == "regression" else 3, 3)), task == "classification")
    environment = Environment("a", x, y, weights)
    for predictor in (model, Said(model, model.forward(x))):
        scores = score(predictor, environment, task, 3)
        said, losses = model.predict(x), model.losses(x, y)
        assert scores["loss"] == pytest.approx(np.average(losses, weights=weights))
        if task == "regression":
            assert scores["error"] == pytest.approx(metrics.mean_squared_error(y, said, sample_weight=weights))
        else:
            assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(y, said, sample_weight=weights))
            assert scores["f1"] == pytest.approx(f1_score(y, said, average="macro", sample_weight=weights))
    if task == "classification":
        right = Environment("right", x, model.predict(x), weights)
        assert score(model, right, task, 3)["error"] == 0


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, np.nan], [1.0, np.inf]])
def test_weights_of_an_environment_are_above_0(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="'a' needs weights .row. that are finite and above 0"):
        Environment("a", np.zeros((2, 1)), np.zeros(2), np.array(weights))
