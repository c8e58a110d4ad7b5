"""Linear models fitted exactly: least squares in closed form, logistic regression by Newton's method, in double."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import TrainingFailed

Array = NDArray[np.float64]
MOST_STEPS = 200
SETTLED = 1e-9  # the largest slope at which a fit has converged
UNSEEN = 64  # units in the last place of the loss: less is rounding of its sum
FLAT = 1e-10  # what makes the Hessian invertible where all constants may move together


def fit_ridge(x: Array, targets: Array, penalty: float, weights: Array | None = None) -> Array:
    """Coefficients [output, feature + 1], the constant last, for targets [output, row].

    They minimize the weighted mean of squared errors plus `penalty` times the squared coefficients of the columns,
    each scaled to variance 1; the constant is free.
    """
    share = _shares(weights, len(x))
    means, scales = _location(x, share)
    centered = (x - means) / scales
    target_means = targets @ share
    gram = (centered * share[:, None]).T @ centered + penalty * np.eye(x.shape[1])
    cross = (centered * share[:, None]).T @ (targets.T - target_means)
    coefficients: Array = np.linalg.lstsq(gram, cross, rcond=None)[0].T.astype(np.float64)
    return _unscaled(coefficients, target_means, means, scales)


def fit_logistic(
    x: Array,
    y: NDArray[Any],
    classes: int,
    penalty: float,
    weights: Array | None = None,
    toward: Array | None = None,
) -> Array:
    """Coefficients [class, feature + 1] of logits, the constant last.

    They minimize the weighted mean log loss plus half of `penalty` times their squared distance from `toward`. That
    is 0 unless it is given, and then the columns are scaled to variance 1 and the constants are free.
    """
    share = _shares(weights, len(x))
    means, scales = _location(x, share) if toward is None else (np.zeros(x.shape[1]), np.ones(x.shape[1]))
    columns = np.column_stack([(x - means) / scales, np.ones(len(x))])
    start = np.zeros((classes, columns.shape[1])) if toward is None else toward
    pull = np.full(columns.shape[1], penalty)
    if toward is None:
        pull[-1] = 0.0
    coefficients = _newton(columns, np.eye(classes)[y], share, pull, start)
    if toward is not None:
        return coefficients
    return _unscaled(coefficients[:, :-1], coefficients[:, -1], means, scales)


def _newton(columns: Array, targets: Array, share: Array, pull: Array, start: Array) -> Array:
    """From columns [row, column], targets [row, class], pull [column]; the loss falls with every step."""
    classes, width = start.shape
    coefficients = start.copy()
    loss, probabilities = _log_loss(columns, targets, share, pull, start, coefficients)
    for _ in range(MOST_STEPS):
        slope = ((probabilities - targets) * share[:, None]).T @ columns + pull * (coefficients - start)
        if np.abs(slope).max() < SETTLED:
            return coefficients
        hessian = np.zeros((classes, width, classes, width))
        for a in range(classes):
            for b in range(a + 1):
                curvature = share * probabilities[:, a] * ((a == b) - probabilities[:, b])
                block = (columns * curvature[:, None]).T @ columns
                hessian[a, :, b] = hessian[b, :, a] = block
        full = hessian.reshape(classes * width, -1) + np.diag(np.tile(pull, classes) + FLAT)
        step = np.linalg.solve(full, slope.ravel()).reshape(classes, width)
        gain, last_place = float((slope * step).sum()), np.spacing(loss)
        if gain < UNSEEN * last_place:
            return coefficients - step
        length = 1.0
        while length * gain > last_place:
            there = _log_loss(columns, targets, share, pull, start, coefficients - length * step)
            if there[0] <= loss - 1e-4 * length * gain:
                break
            length /= 2
        else:  # rounding is all that is left of the slope
            return coefficients
        coefficients = coefficients - length * step
        loss, probabilities = there
    raise TrainingFailed(f"a logistic regression did not converge in {MOST_STEPS} Newton steps.")


def _log_loss(
    columns: Array, targets: Array, share: Array, pull: Array, start: Array, coefficients: Array
) -> tuple[float, Array]:
    """The penalized mean log loss, and probabilities [row, class]."""
    logits = columns @ coefficients.T
    logits -= logits.max(1, keepdims=True)
    log_sum = np.log(np.exp(logits).sum(1))
    losses = log_sum - (logits * targets).sum(1)
    penalty = float((pull * np.square(coefficients - start)).sum()) / 2
    return float(share @ losses) + penalty, np.exp(logits - log_sum[:, None])


def _shares(weights: Array | None, rows: int) -> Array:
    return np.full(rows, 1 / rows) if weights is None else weights / weights.sum()


def _location(x: Array, share: Array) -> tuple[Array, Array]:
    """Means and standard deviations of the columns; constant columns have 1."""
    means = share @ x
    deviations = np.sqrt(share @ np.square(x - means))
    return means, np.where(deviations > 1e-12 * (1 + np.abs(means)), deviations, 1.0)


def _unscaled(coefficients: Array, constants: Array, means: Array, scales: Array) -> Array:
    """Of the columns as they are, from those of scaled ones."""
    of_columns = coefficients / scales
    return np.column_stack([of_columns, constants - of_columns @ means])
