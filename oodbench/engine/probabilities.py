"""Class probabilities that the outputs of models come to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
