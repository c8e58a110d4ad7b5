from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import f1_score

from oodbench import Environment
from oodbench.errors import TrainingFailed
from oodbench.metrics import f1, score, summarize


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
    with pytest.raises(TrainingFailed, match="is no class from 0 to 1"):
        score(Says(values), environment, "classification", 2)


def test_summaries_over_environments() -> None:
    rows = [
        (0, "test", "a", 1.0),
        (0, "test", "b", 3.0),
        (1, "test", "a", 2.0),
        (1, "test", "b", 2.0),
        (0, "validation", "a", 9.0),
    ]
    results = pd.DataFrame(rows, columns=["seed", "part", "environment", "error"]).assign(chosen=True)
    other = results.assign(chosen=False, error=100.0)
    summary = summarize(pd.concat([results, other]), "regression")
    assert summary["mean_error"].tolist() == [2.0, 2.0]
    assert np.allclose(summary["std_error"], [np.sqrt(2), 0.0])
    assert summary["max_error"].tolist() == [3.0, 2.0]


def test_train_accuracy_counts_rows_not_environments() -> None:
    rows = [
        (0, "train", 100, 0.9, 0.5, 0.1),
        (0, "train", 300, 0.5, 0.5, 0.5),
        (0, "test", 10, 0.4, 0.3, 0.6),
        (0, "test", 10, 0.6, 0.7, 0.4),
    ]
    results = pd.DataFrame(rows, columns=["seed", "part", "rows", "accuracy", "f1", "error"]).assign(chosen=True)
    summary = summarize(results, "classification").iloc[0]
    assert np.isclose(summary["train_accuracy"], 0.6)
    assert np.isclose(summary["mean_accuracy"], 0.5)
    assert (summary["mean_f1"], summary["worst_f1"]) == (0.5, 0.3)
