"""Gradient boosting of trees on binned features, as in scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import LogInteger, LogUniform, Method, Option, Predictor, TrainingRows, Uniform, Value
from oodbench.kit import EstimatorModel, check_weights, needs_of_weights, one_thread, stopping_parts

ROUNDS, PATIENCE = 1000, 20  # at most so many trees; so many without a better loss end the training


class HistGB(Method):
    """Histogram gradient boosting (Friedman 2001; Ke et al. 2017), by scikit-learn.

    It stops early on a tenth of the training rows. `weights` makes the classes or the environments count alike.
    """

    space = {
        "learning_rate": LogUniform(5e-3, 0.1, default=0.1),
        "max_leaf_nodes": LogInteger(2, 200, default=31),
        "min_samples_leaf": LogInteger(1, 64, default=20),
        "max_features": Uniform(0.4, 1.0, default=1.0),
        "l2_regularization": LogUniform(1e-4, 2.0, default=1e-4),
        "weights": Option("none", "class", "environment"),
    }
    trials_per_task = 4

    def needs_with(self, hparams: Mapping[str, Value]) -> frozenset[str]:
        return needs_of_weights(hparams)

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_weights(train, hparams)

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        grown, stopping = stopping_parts(train, hparams, seed)
        kind = HistGradientBoostingClassifier if train.task == "classification" else HistGradientBoostingRegressor
        own = {name: value for name, value in hparams.items() if name != "weights"}
        estimator = kind(max_iter=ROUNDS, n_iter_no_change=PATIENCE, early_stopping=True, random_state=seed, **own)
        with one_thread():
            estimator.fit(
                *(grown.x, grown.y, grown.weights),
                X_val=stopping.x, y_val=stopping.y, sample_weight_val=stopping.weights,
            )  # fmt: skip
        return EstimatorModel.wrap(estimator, "sklearn", train)
