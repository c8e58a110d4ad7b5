"""Logistic regression: a convex problem, solved exactly."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import LogUniform, Method, Predictor, TrainingRows, Value
from oodbench.kit import fit_logistic, linear_model


class Logistic(Method):
    """Logistic regression (Cox 1958) with an L2 penalty on columns of variance 1, by Newton's method."""

    tasks = ("classification",)
    space = {"C": LogUniform(0.1, 1e3, default=1.0)}
    trials_per_task = 64
    takes_weights = True

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        penalty = 1 / (float(hparams["C"]) * (len(train) if train.weights is None else train.weights.sum()))
        return linear_model(fit_logistic(train.x, train.y, train.classes, penalty, train.weights), True)
