"""Asking predictors about rows: for their answers, and for class probabilities.

One of another library may write into what it is given: it is asked about copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.fitted import FittedModel
from oodbench.engine.probabilities import Probabilities, from_logits
from oodbench.engine.said import Said

MOST_ROWS = 1 << 20  # that a predictor is asked about at a time; no copy is larger
SLACK = 1e-3  # of sums of probabilities: libraries compute in single precision


def ask(predictor: object, door: str, *columns: NDArray[Any]) -> Any:
    """What its method of that name says of the rows of x, or of x and y."""
    answer: Callable[..., Any] = getattr(predictor, door)
    if isinstance(predictor, FittedModel | Said):  # ours: it writes nowhere, and goes over the rows in chunks
        return answer(*columns)
    starts = range(0, len(columns[0]), MOST_ROWS)
    answers = [answer(*(_copy(column[start : start + MOST_ROWS]) for column in columns)) for start in starts]
    if len(answers) == 1 or answers[0] is None:
        return answers[0]
    return np.concatenate(answers)


def probabilities_of(predictor: Any, x: NDArray[np.float64], classes: int) -> Probabilities:
    """What `predict_proba` says; else `outputs`, which are probabilities if every row of them is, or logits.

    ValueError, with the reason, where the predictor has neither, or what it gives is not usable.
    """
    said = ask(predictor, "predict_proba", x) if hasattr(predictor, "predict_proba") else None
    if said is None and hasattr(predictor, "outputs") and not hasattr(predictor, "predict_proba"):
        outputs = _checked("outputs", ask(predictor, "outputs", x), len(x), classes)
        said = outputs if _are_probabilities(outputs) else from_logits(outputs)
    if said is None:
        raise ValueError("the model gives no probabilities")
    probabilities = _checked("predict_proba", said, len(x), classes)
    if not _are_probabilities(probabilities):
        raise ValueError("predict_proba returned rows that are no probabilities: not from 0 to 1, or their sum not 1")
    probabilities /= probabilities.sum(1, keepdims=True)
    return probabilities


def _copy(array: NDArray[Any]) -> NDArray[Any]:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


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
