"""Class probabilities of predictors: those that they give, or what their outputs come to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SLACK = 1e-3  # of sums of probabilities: libraries compute in single precision

Probabilities = NDArray[np.float64]  # [row, class]


def from_logits(outputs: NDArray[Any]) -> Probabilities:
    """Softmax of outputs [row, class]."""
    columns = np.ascontiguousarray(outputs.T, np.float64)  # numpy adds up long rows many times faster than short ones
    raised = np.exp(columns - columns.max(0))
    probabilities: Probabilities = (raised / raised.sum(0)).T
    return probabilities


def from_signs(outputs: NDArray[Any]) -> Probabilities:
    """Of outputs that were trained by a squared loss to +1 for the class of a row, else -1, so that they estimate
    2 p - 1; a single output stands for class 1. Where no class is likely at all, all are equally so."""
    shares = np.clip((outputs.astype(np.float64) + 1) / 2, 0, 1)
    if shares.shape[1] == 1:
        return np.hstack([1 - shares, shares])
    sums = shares.sum(1, keepdims=True)
    return np.where(sums > 0, shares / np.where(sums > 0, sums, 1), 1 / shares.shape[1])


def probabilities_of(predictor: Any, x: NDArray[np.float64], classes: int) -> Probabilities:
    """What `predict_proba` says; else `outputs`, which are probabilities if every row of them is, or logits.

    ValueError, with the reason, where the predictor has neither, or what it gives is not usable.
    """
    said = predictor.predict_proba(x) if hasattr(predictor, "predict_proba") else None
    if said is None and hasattr(predictor, "outputs") and not hasattr(predictor, "predict_proba"):
        outputs = _checked("outputs", predictor.outputs(x), len(x), classes)
        said = outputs if _are_probabilities(outputs) else from_logits(outputs)
    if said is None:
        raise ValueError("the model gives no probabilities")
    probabilities = _checked("predict_proba", said, len(x), classes)
    if not _are_probabilities(probabilities):
        raise ValueError("predict_proba returned rows that are no probabilities: not from 0 to 1, or their sum not 1")
    probabilities /= probabilities.sum(1, keepdims=True)
    return probabilities


def _checked(door: str, said: Any, rows: int, classes: int) -> Probabilities:
    numbers = np.asarray(said)
    if numbers.shape != (rows, classes):
        raise ValueError(f"{door} returned shape {numbers.shape}; it must be ({rows}, {classes})")
    if numbers.dtype.kind not in "iufb" or not np.isfinite(numbers).all():
        raise ValueError(f"{door} returned values that are not finite numbers")
    return numbers.astype(np.float64)


def _are_probabilities(numbers: Probabilities) -> bool:
    within = (numbers >= 0).all() and (numbers <= 1 + SLACK).all()
    return bool(within and np.allclose(numbers.sum(1), 1, rtol=0, atol=SLACK))
