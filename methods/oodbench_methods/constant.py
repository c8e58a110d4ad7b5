"""The constant: what any method must beat."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oodbench import Method, Predictor, TrainingRows, Value
from oodbench.kit import linear_model


class Constant(Method):
    """The mean of the training rows, or their most frequent class; a reference on boards, never ranked."""

    ranked = False
    trials_per_task = 64

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        if train.task == "regression":
            constants = np.array([train.y.mean()])
        else:
            constants = np.log(np.maximum(np.bincount(train.y, minlength=train.classes) / len(train), 1e-12))
        coefficients = np.zeros((len(constants), train.x.shape[1] + 1))
        coefficients[:, -1] = constants
        return linear_model(coefficients, train.task == "classification")
