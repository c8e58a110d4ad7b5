"""The built-in metrics besides error, accuracy and F1, which `scoring.py` has. A test holds them to scikit-learn's.

Rows count by their weights [row] where they have some, as in scikit-learn by `sample_weight`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.metric import metric

BINS = 15  # of the calibration error
DECILE = 10

Numbers = NDArray[Any]
Weights = NDArray[Any] | None


def _mean(values: Numbers, weights: Weights) -> float:
    return float(values.mean() if weights is None else np.average(values, weights=weights))


# ---- of classes: from predictions


@metric("classification", better="higher")
def balanced_accuracy(y: Numbers, predicted: Numbers, weights: Weights = None) -> float:
    """Mean recall of the classes that the environment has."""
    return float(np.mean(_recalls(y, predicted, weights)))


@metric("classification", better="higher")
def least_recall(y: Numbers, predicted: Numbers, weights: Weights = None) -> float:
    """Recall of the worst class that the environment has."""
    return float(np.min(_recalls(y, predicted, weights)))


def _recalls(y: Numbers, predicted: Numbers, weights: Weights) -> Numbers:
    """Of the classes that there are."""
    rows, hit = np.bincount(y, weights), predicted == y
    right = np.bincount(y[hit], None if weights is None else weights[hit], minlength=len(rows))
    shares: Numbers = right[rows > 0] / rows[rows > 0]
    return shares


# ---- of classes: from probabilities


@metric("classification", better="lower", needs="probabilities")
def log_loss(y: Numbers, probabilities: Numbers, weights: Weights = None) -> float:
    """Mean negative log-probability of the right class."""
    least = np.finfo(np.float64).eps  # a class that is ruled out has a finite loss
    return _mean(-np.log(np.clip(probabilities[np.arange(len(y)), y], least, 1 - least)), weights)


@metric("classification", better="lower", needs="probabilities")
def brier(y: Numbers, probabilities: Numbers, weights: Weights = None) -> float:
    """Mean squared error of the probability of class 1 for two classes, of all classes summed up for more."""
    if probabilities.shape[1] == 2:
        return _mean(np.square(probabilities[:, 1] - y), weights)
    return _mean(np.square(probabilities - np.eye(probabilities.shape[1])[y]).sum(1), weights)


@metric("classification", better="higher", needs="probabilities")
def auc(y: Numbers, probabilities: Numbers, weights: Weights = None) -> float:
    """Area under the ROC curve: of class 1 for two classes, the mean of each class against the rest for more."""
    return _over_classes(_roc_area, y, probabilities, weights)


@metric("classification", better="higher", needs="probabilities")
def pr_auc(y: Numbers, probabilities: Numbers, weights: Weights = None) -> float:
    """Average precision: of class 1 for two classes, the mean of each class against the rest for more."""
    return _over_classes(_average_precision, y, probabilities, weights)


@metric("classification", better="lower", needs="probabilities")
def ece(y: Numbers, probabilities: Numbers, weights: Weights = None) -> float:
    """Calibration error: confidence against accuracy in 15 bins of about as many rows, or as much weight, each."""
    confidence = probabilities.max(1)
    right = probabilities.argmax(1) == y
    if weights is None:
        inner = np.percentile(confidence, np.linspace(0, 1, BINS + 1) * 100)[1:-1]
        gaps = np.bincount(np.searchsorted(inner, confidence), confidence - right, BINS)
        return float(np.abs(gaps).sum() / len(y))
    order = np.argsort(confidence, kind="stable")
    below = np.cumsum(weights[order]) / weights.sum()
    inner = confidence[order][np.searchsorted(below, np.linspace(0, 1, BINS + 1)[1:-1])]
    gaps = np.bincount(np.searchsorted(inner, confidence), weights * (confidence - right), BINS)
    return float(np.abs(gaps).sum() / weights.sum())


def _over_classes(
    area: Callable[[Numbers, Numbers, Weights], float], y: Numbers, probabilities: Numbers, weights: Weights
) -> float:
    classes = probabilities.shape[1]
    absent = sorted(set(range(classes)) - set(np.unique(y).tolist()))
    if absent:
        raise ValueError(f"it has no row of class {absent[0]}")
    labels = [1] if classes == 2 else range(classes)
    return float(np.mean([area(y == label, probabilities[:, label], weights) for label in labels]))


def _roc_area(positive: Numbers, scores: Numbers, weights: Weights) -> float:
    """How often a positive row is above a negative one; a tie counts half."""
    if weights is not None:
        order = np.argsort(scores[~positive], kind="stable")
        below, beaten = scores[~positive][order], np.append(0, np.cumsum(weights[~positive][order]))
        wins = sum(beaten[np.searchsorted(below, scores[positive], side)] for side in ("left", "right"))
        return float(weights[positive] @ wins / (2 * weights[positive].sum() * beaten[-1]))
    above, below = np.sort(scores[positive]), np.sort(scores[~positive])  # both: nearby searches are quick
    wins = np.searchsorted(below, above, "left").sum() + np.searchsorted(below, above, "right").sum()
    return float(wins / (2 * len(above) * len(below)))


def _average_precision(positive: Numbers, scores: Numbers, weights: Weights) -> float:
    """Precision at every threshold, weighted by the recall it adds; rows with one score share a threshold."""
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # last row of every threshold
    if weights is None:
        found, seen = np.cumsum(positive[order])[ends], ends + 1
    else:
        found, seen = np.cumsum((weights * positive)[order])[ends], np.cumsum(weights[order])[ends]
    return float(np.sum(np.diff(found, prepend=0) / found[-1] * (found / seen)))


# ---- of values


@metric("regression", better="lower")
def rmse(y: Numbers, predicted: Numbers, weights: Weights = None) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(_mean(np.square(y - predicted), weights)))


@metric("regression", better="lower")
def mae(y: Numbers, predicted: Numbers, weights: Weights = None) -> float:
    """Mean absolute error."""
    return _mean(np.abs(y - predicted), weights)


@metric("regression", better="higher")
def r2(y: Numbers, predicted: Numbers, weights: Weights = None) -> float:
    """Share of the target's variance that is explained, R²; below 0 where the environment's mean does better."""
    errors, gaps = np.square(y - predicted), np.square(y - _mean(y, weights))
    if weights is not None:
        errors, gaps = weights * errors, weights * gaps
    spread = float(gaps.sum())
    if not spread or not np.ptp(y):
        raise ValueError("its targets are all the same")
    return 1 - float(errors.sum()) / spread


@metric("regression", better="lower")
def decile_error(y: Numbers, predicted: Numbers, weights: Weights = None) -> float:
    """Mean squared error of the worst decile: the tenth of the rows, or of their weight, with the largest errors."""
    errors = np.square(y - predicted)
    if weights is None:
        worst = -(-len(y) // DECILE)
        return float(np.partition(errors, -worst)[-worst:].mean())
    order = np.argsort(-errors, kind="stable")
    reached, share = np.cumsum(weights[order]), weights.sum() / DECILE
    inside = np.clip(share - (reached - weights[order]), 0, weights[order])  # the last row counts in part
    return float(np.average(errors[order], weights=inside))
