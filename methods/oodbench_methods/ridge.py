"""Ridge regression: penalized least squares in closed form."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oodbench import LogUniform, Method, Predictor, Recipe, TrainingRows, Value
from oodbench.kit import class_signs_array, fit_ridge, linear_model


class Ridge(Method):
    """Ridge regression (Hoerl & Kennard 1970), exact; classes are fitted as -1 and +1.

    The penalty is 1 / (C n) on columns of variance 1, as for the logistic regression; n is the sum of the weights where
    rows have some.
    """

    space = {"C": LogUniform(0.1, 1e3, default=1.0)}
    trials_per_task = 64
    takes_weights = True

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        penalty = 1 / (float(hparams["C"]) * (len(train) if train.weights is None else train.weights.sum()))
        if train.task == "regression":
            return linear_model(fit_ridge(train.x, train.y[None], penalty, train.weights), False)
        recipe = Recipe(loss="squared")
        signs = class_signs_array(train.y, recipe.outputs(True, train.classes), np.float64)
        return linear_model(fit_ridge(train.x, signs, penalty, train.weights), True, recipe)
