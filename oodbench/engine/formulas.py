"""The built-in metrics besides error, accuracy and F1, which `scoring.py` has. A test holds them to scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.metric import metric

BINS = 15  # of the calibration error
DECILE = 10

Numbers = NDArray[Any]


# ---- of classes: from predictions


@metric("classification", better="higher")
def balanced_accuracy(y: Numbers, predicted: Numbers) -> float:
    """Mean recall of the classes that the environment has."""
    return float(np.mean(_recalls(y, predicted)))


@metric("classification", better="higher")
def least_recall(y: Numbers, predicted: Numbers) -> float:
    """Recall of the worst class that the environment has."""
    return float(np.min(_recalls(y, predicted)))


def _recalls(y: Numbers, predicted: Numbers) -> Numbers:
    """Of the classes that there are."""
    rows = np.bincount(y)
    right = np.bincount(y[predicted == y], minlength=len(rows))
    shares: Numbers = right[rows > 0] / rows[rows > 0]
    return shares


# ---- of classes: from probabilities


@metric("classification", better="lower", needs="probabilities")
def log_loss(y: Numbers, probabilities: Numbers) -> float:
    """Mean negative log-probability of the right class."""
    least = np.finfo(np.float64).eps  # a class that is ruled out has a finite loss
    return float(-np.log(np.clip(probabilities[np.arange(len(y)), y], least, 1 - least)).mean())


@metric("classification", better="lower", needs="probabilities")
def brier(y: Numbers, probabilities: Numbers) -> float:
    """Mean squared error of the probability of class 1 for two classes, of all classes summed up for more."""
    if probabilities.shape[1] == 2:
        return float(np.square(probabilities[:, 1] - y).mean())
    return float(np.square(probabilities - np.eye(probabilities.shape[1])[y]).sum(1).mean())


@metric("classification", better="higher", needs="probabilities")
def auc(y: Numbers, probabilities: Numbers) -> float:
    """Area under the ROC curve: of class 1 for two classes, the mean of each class against the rest for more."""
    return _over_classes(_roc_area, y, probabilities)


@metric("classification", better="higher", needs="probabilities")
def pr_auc(y: Numbers, probabilities: Numbers) -> float:
    """Average precision: of class 1 for two classes, the mean of each class against the rest for more."""
    return _over_classes(_average_precision, y, probabilities)


@metric("classification", better="lower", needs="probabilities")
def ece(y: Numbers, probabilities: Numbers) -> float:
    """Calibration error: confidence against accuracy in 15 bins of about as many rows each."""
    confidence = probabilities.max(1)
    right = probabilities.argmax(1) == y
    inner = np.percentile(confidence, np.linspace(0, 1, BINS + 1) * 100)[1:-1]
    gaps = np.bincount(np.searchsorted(inner, confidence), confidence - right, BINS)
    return float(np.abs(gaps).sum() / len(y))


def _over_classes(area: Callable[[Numbers, Numbers], float], y: Numbers, probabilities: Numbers) -> float:
    classes = probabilities.shape[1]
    absent = sorted(set(range(classes)) - set(np.unique(y).tolist()))
    if absent:
        raise ValueError(f"it has no row of class {absent[0]}")
    labels = [1] if classes == 2 else range(classes)
    return float(np.mean([area(y == label, probabilities[:, label]) for label in labels]))


def _roc_area(positive: Numbers, scores: Numbers) -> float:
    """How often a positive row is above a negative one; a tie counts half."""
    above, below = np.sort(scores[positive]), np.sort(scores[~positive])  # both: nearby searches are quick
    wins = np.searchsorted(below, above, "left").sum() + np.searchsorted(below, above, "right").sum()
    return float(wins / (2 * len(above) * len(below)))


def _average_precision(positive: Numbers, scores: Numbers) -> float:
    """Precision at every threshold, weighted by the recall it adds; rows with one score share a threshold."""
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # last row of every threshold
    found = np.cumsum(positive[order])[ends]
    return float(np.sum(np.diff(found, prepend=0) / found[-1] * (found / (ends + 1))))


# ---- of values


@metric("regression", better="lower")
def rmse(y: Numbers, predicted: Numbers) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(np.square(y - predicted).mean()))


@metric("regression", better="lower")
def mae(y: Numbers, predicted: Numbers) -> float:
    """Mean absolute error."""
    return float(np.abs(y - predicted).mean())


@metric("regression", better="higher")
def r2(y: Numbers, predicted: Numbers) -> float:
    """Share of the target's variance that is explained, R²; below 0 where the environment's mean does better."""
    spread = float(np.square(y - y.mean()).sum())
    if not spread:
        raise ValueError("its targets are all the same")
    return 1 - float(np.square(y - predicted).sum()) / spread


@metric("regression", better="lower")
def decile_error(y: Numbers, predicted: Numbers) -> float:
    """Mean squared error of the worst decile: the tenth of the rows with the largest errors."""
    worst = -(-len(y) // DECILE)
    return float(np.partition(np.square(y - predicted), -worst)[-worst:].mean())
