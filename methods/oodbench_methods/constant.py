"""The constant: what any method must beat."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Method, Predictor, TrainingRows, Value
from oodbench.kit import constant_model


class Constant(Method):
    """The mean of the training rows, or their most frequent class; a reference on boards, never ranked.

    Every board has its line without being asked. As a method it has a study of its own, with stability and a model.
    """

    ranked = False
    trials_per_task = 64
    takes_weights = True

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        return constant_model(train.y, train.task, train.classes, train.x.shape[1], train.weights)
