"""Selectors that see rows of the test environments before the choice: a class of boards of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.asking import probabilities_of
from oodbench.engine.data import Environment, Task
from oodbench.engine.scoring import score
from oodbench.kit.linear import fit_logistic
from oodbench.plugin.selector import Target
from oodbench.study.selectors import Mean

if TYPE_CHECKING:
    from oodbench.engine.predictor import Predictor

PENALTY = 1e-3  # on the coefficients that tell test rows from validation rows: without it, rows apart have no fit


@dataclass(frozen=True)
class Importance(Mean):
    """Mean over test environments of the validation error, with rows weighted as frequent as they are there."""

    takes_metric: ClassVar[bool] = False
    sees_unlabelled: ClassVar[bool] = True

    def estimator(self, target: Target) -> Callable[[Predictor], float]:
        rows = target.validation
        weights = density_ratio(rows.x, target.x, rows.weights, target.weights)

        def estimate(model: Predictor) -> float:
            predicted = np.asarray(model.predict(rows.x.copy()))
            losses = np.square(predicted - rows.y) if target.task == "regression" else predicted != rows.y
            return float(weights @ losses)

        return estimate


@dataclass(frozen=True)
class Atc(Mean):
    """Mean over test environments of the share of rows below a bound on confidence that fits the validation errors."""

    takes_metric: ClassVar[bool] = False
    sees_unlabelled: ClassVar[bool] = True
    tasks: ClassVar[tuple[Task, ...]] = ("classification",)

    def estimator(self, target: Target) -> Callable[[Predictor], float]:
        rows = target.validation

        def estimate(model: Predictor) -> float:
            known, unknown = (confidence(model, x, target.classes) for x in (rows.x, target.x))
            wrong = np.asarray(model.predict(rows.x.copy())) != rows.y
            if rows.weights is not None:
                threshold = _bound(known, rows.weights, float(rows.weights @ wrong))
                return float(np.average(unknown < threshold, weights=target.weights))
            threshold = np.append(np.sort(known), np.inf)[np.count_nonzero(wrong)]
            return float(np.mean(unknown < threshold))

        return estimate


@dataclass(frozen=True)
class FewShot(Mean):
    """Mean error over test environments, on a few labelled rows of each, which are then in no test score."""

    labels: int = 10
    takes_metric: ClassVar[bool] = False

    def estimator(self, target: Target) -> Callable[[Predictor], float]:
        assert target.y is not None
        rows = Environment("target", target.x, target.y, target.weights)
        return lambda model: score(model, rows, target.task, target.classes)["error"]


def _bound(confidences: NDArray[np.float64], weights: NDArray[np.float64], below: float) -> float:
    """The confidence below which rows have so much weight; infinite if all have no more."""
    order = np.argsort(confidences)
    before = np.append(0, np.cumsum(weights[order]))
    return float(np.append(confidences[order], np.inf)[np.searchsorted(before, below * (1 + 1e-9), "right") - 1])


def density_ratio(
    x: NDArray[np.float64],
    target: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    target_weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Weights of the rows x, with the sum 1: how much more frequent such rows are among the target's, as a logistic
    regression tells them apart. pi / (1 - pi) of its probability is that ratio, up to a factor that is the same for
    all rows. Rows that have weights keep them, as factors."""
    both = np.vstack([x, target])
    is_target = np.repeat([0, 1], [len(x), len(target)])
    counted = None if weights is None or target_weights is None else np.concatenate([weights, target_weights])
    coefficients = fit_logistic(both, is_target, 2, PENALTY, counted)
    logits = np.column_stack([x, np.ones(len(x))]) @ (coefficients[1] - coefficients[0])
    raised = np.exp(logits - logits.max())
    raised = raised if weights is None else raised * weights
    ratio: NDArray[np.float64] = raised / raised.sum()
    return ratio


def confidence(model: Any, x: NDArray[np.float64], classes: int) -> NDArray[np.float64]:
    """Minus the entropy of what the model says of each row."""
    probabilities = probabilities_of(model, x, classes)
    logs = np.log(np.where(probabilities > 0, probabilities, 1.0))
    total: NDArray[np.float64] = (probabilities * logs).sum(1)
    return total
