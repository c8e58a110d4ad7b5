"""Every built-in metric is scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics as sklearn
from sklearn.calibration import calibration_curve

from oodbench.engine import formulas
from oodbench.engine.metric import Metric
from oodbench.plugin import registry

Numbers = NDArray[np.float64]
Formulas = dict[str, Callable[[Any, Any], float]]
ROWS = st.integers(1, 60)
SEEDS = st.integers(0, 2**32 - 1)


def of_two(two: Callable[..., float], more: Callable[..., float], y: Numbers, probabilities: Numbers) -> float:
    """What scikit-learn says of two classes takes the probabilities of class 1."""
    return float(two(y, probabilities[:, 1]) if probabilities.shape[1] == 2 else more(y, probabilities))


def average_precision(y: Numbers, probabilities: Numbers) -> float:
    return float(sklearn.average_precision_score(np.eye(probabilities.shape[1])[y], probabilities, average="macro"))


def brier_of_many(y: Numbers, probabilities: Numbers) -> float:
    labels = range(probabilities.shape[1])
    return float(sklearn.brier_score_loss(y, probabilities, labels=labels, scale_by_half=False))


def least_recall(y: Numbers, predicted: Numbers) -> float:
    return float(sklearn.recall_score(y, predicted, average=None, labels=np.unique(y), zero_division=0).min())


def calibration(y: Numbers, probabilities: Numbers) -> float:
    """From scikit-learn's curve, whose bins have these many rows."""
    confidence, right = probabilities.max(1), probabilities.argmax(1) == y
    accurate, confident = calibration_curve(right, confidence, n_bins=formulas.BINS, strategy="quantile")
    edges = np.percentile(confidence, np.linspace(0, 1, formulas.BINS + 1) * 100)
    rows = np.bincount(np.searchsorted(edges[1:-1], confidence), minlength=formulas.BINS)
    return float((rows[rows > 0] * np.abs(accurate - confident)).sum() / len(y))


def decile(y: Numbers, predicted: Numbers) -> float:
    worst = np.argsort(np.abs(y - predicted))[::-1][: int(np.ceil(len(y) / 10))]
    return float(sklearn.mean_squared_error(y[worst], predicted[worst]))


OF_CLASSES: Formulas = {
    "balanced_accuracy": sklearn.balanced_accuracy_score,
    "least_recall": least_recall,
}
OF_PROBABILITIES: Formulas = {
    "log_loss": lambda y, p: sklearn.log_loss(y, p, labels=range(p.shape[1])),
    "brier": partial(of_two, sklearn.brier_score_loss, brier_of_many),
    "auc": partial(of_two, sklearn.roc_auc_score, partial(sklearn.roc_auc_score, multi_class="ovr")),
    "pr_auc": partial(of_two, sklearn.average_precision_score, average_precision),
    "ece": calibration,
}
OF_VALUES: Formulas = {
    "rmse": sklearn.root_mean_squared_error,
    "mae": sklearn.mean_absolute_error,
    "r2": sklearn.r2_score,
    "decile_error": decile,
}


def test_all_built_in_metrics_are_compared() -> None:
    own = {plugin.name for plugin in registry.plugins("metric") if plugin.source == "oodbench"}
    assert own == {*OF_CLASSES, *OF_PROBABILITIES, *OF_VALUES}
    assert own == {name for name, value in vars(formulas).items() if isinstance(value, Metric)}


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true", "ignore:.*single label")
@pytest.mark.parametrize("name", OF_CLASSES)
@settings(deadline=None)
@given(rows=ROWS, classes=st.integers(2, 4), seed=SEEDS)
def test_metrics_of_predicted_classes(name: str, rows: int, classes: int, seed: int) -> None:
    y, predicted = np.random.default_rng(seed).integers(0, classes, (2, rows))
    assert np.isclose(getattr(formulas, name)(y, predicted), OF_CLASSES[name](y, predicted))


@pytest.mark.parametrize("name", OF_PROBABILITIES)
@settings(deadline=None)
@given(rows=ROWS, classes=st.integers(2, 4), seed=SEEDS, digits=st.sampled_from([1, 15]))
def test_metrics_of_probabilities(name: str, rows: int, classes: int, seed: int, digits: int) -> None:
    """With few digits there are ties, and probabilities of 0 and 1."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, rows)
    shares = random.dirichlet(np.ones(classes), rows).round(digits)
    shares[:, 0] = (1 - shares[:, 1:].sum(1)).clip(0)
    probabilities = shares / shares.sum(1, keepdims=True)
    assume(name not in ("auc", "pr_auc") or len(np.unique(y)) == classes)
    if name == "log_loss":
        assume(rows > 1)
    assert np.isclose(getattr(formulas, name)(y, probabilities), OF_PROBABILITIES[name](y, probabilities))


@pytest.mark.parametrize("name", OF_VALUES)
@settings(deadline=None)
@given(rows=st.integers(2, 60), seed=SEEDS)
def test_metrics_of_values(name: str, rows: int, seed: int) -> None:
    y, predicted = np.random.default_rng(seed).normal(size=(2, rows))
    assert np.isclose(getattr(formulas, name)(y, predicted), OF_VALUES[name](y, predicted))


WEIGHED: dict[str, Callable[..., float]] = {
    "balanced_accuracy": sklearn.balanced_accuracy_score,
    "log_loss": lambda y, p, **more: sklearn.log_loss(y, p, labels=range(p.shape[1]), **more),
    "auc": lambda y, p, **more: sklearn.roc_auc_score(y, p[:, 1] if p.shape[1] == 2 else p, multi_class="ovr", **more),
    "pr_auc": lambda y, p, **more: sklearn.average_precision_score(
        *((y, p[:, 1]) if p.shape[1] == 2 else (np.eye(p.shape[1])[y], p)), average="macro", **more
    ),
    "brier": lambda y, p, **more: (
        sklearn.brier_score_loss(
            y, p[:, 1] if p.shape[1] == 2 else p, labels=range(p.shape[1]), scale_by_half=False, **more
        )
        / (2 if p.shape[1] == 2 else 1)
    ),
    "rmse": sklearn.root_mean_squared_error,
    "mae": sklearn.mean_absolute_error,
    "r2": sklearn.r2_score,
}


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize("name", [*OF_CLASSES, *OF_PROBABILITIES, *OF_VALUES])
@settings(deadline=None, max_examples=5)
@given(tens=st.integers(1, 6), classes=st.integers(2, 3), seed=SEEDS)
def test_weights_are_sample_weights(name: str, tens: int, classes: int, seed: int) -> None:
    """Of scikit-learn; and where it has none, a row of weight three is three rows."""
    random = np.random.default_rng(seed)
    rows = 10 * tens
    y, weights = random.integers(0, classes, rows), random.uniform(0.01, 5, rows)
    y[:classes] = range(classes)
    answers: Any = random.integers(0, classes, rows)
    if name in OF_PROBABILITIES:
        answers = random.dirichlet(np.ones(classes), rows).round(2)
        answers /= answers.sum(1, keepdims=True)
    elif name in OF_VALUES:
        y, answers = random.normal(size=(2, rows))
    formula = getattr(formulas, name)
    if name in WEIGHED:
        assert np.isclose(formula(y, answers, weights), WEIGHED[name](y, answers, sample_weight=weights))
    times = random.permutation(np.resize([1, 2, 3, 2, 2], rows))
    several = formula(y.repeat(times), answers.repeat(times, 0))
    # quantiles of few rows are between two of them
    assert np.isclose(formula(y, answers, times.astype(float)), several, atol=0.1 if name == "ece" else 1e-8)


@pytest.mark.parametrize("name", ["auc", "pr_auc"])
def test_areas_need_rows_of_every_class(name: str) -> None:
    with pytest.raises(ValueError, match="it has no row of class 1"):
        getattr(formulas, name)(np.zeros(3, int), np.full((3, 2), 0.5))


def test_a_constant_target_has_no_r2() -> None:
    with pytest.raises(ValueError, match="its targets are all the same"):
        formulas.r2(np.ones(3), np.zeros(3))
