"""Invariant causal prediction: least squares on the columns that belong to every set with invariant residuals."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from oodbench import FittedModel, Linear, Method, Predictor, Recipe, TrainingRows, Uniform, Value
from oodbench.kit import check_environments, check_subsets, invariant_columns, least_squares


class ICP(Method):
    """Invariant causal prediction (Peters, Buehlmann & Meinshausen 2016), for regression.

    A set of columns is rejected where the residuals of a pooled least squares differ in mean (t test) or variance
    (F test) between an environment and the others, at `level`, corrected for the number of tests. The prediction uses
    the columns that all sets that are not rejected share; it is the mean of y where they share none, with a warning.
    """

    needs = frozenset({"environments"})
    tasks = ("regression",)
    space = {"level": Uniform(1e-6, 0.5, default=0.05, searched=False)}

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)
        check_subsets(train)

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        assert train.environment is not None
        columns = invariant_columns(train.x, train.y, train.environment, float(hparams["level"]))
        if not columns:
            warnings.warn("icp found no invariant column: it predicts the mean of y.", stacklevel=2)
        parameters = np.zeros(train.x.shape[1] + 1, np.float32)
        parameters[[*columns, -1]] = least_squares(train.x[:, columns], train.y)
        return FittedModel(Linear(), Recipe(), 1, False, parameters)
