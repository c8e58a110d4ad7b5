from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oodbench import Method, TrainingRows, Uniform


@dataclass
class MeanRule(Method):
    """Predict a multiple of the mean: a method with fit and predict."""

    tasks = ("regression",)
    space = {"shrink": Uniform(0.0, 1.0, default=1.0)}
    mean: float = 0.0

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> MeanRule:
        return MeanRule(float(hparams["shrink"]) * float(np.mean(train.y)))

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), self.mean)
