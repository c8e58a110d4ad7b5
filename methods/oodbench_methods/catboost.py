"""Gradient boosting of trees, as in CatBoost."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Integer, LogUniform, Method, Option, Predictor, TrainingRows, Uniform, Value
from oodbench.kit import EstimatorModel, check_weights, needs_of_weights, require, stopping_parts

ROUNDS, PATIENCE = 1000, 20  # at most so many trees; so many without a better loss end the training


class CatBoost(Method):
    """Gradient boosting with ordered, symmetric trees (Prokhorenkova et al. 2018), by the library of that name.

    It stops early on a tenth of the training rows. `weights` makes the classes or the environments count alike.
    """

    space = {
        "learning_rate": LogUniform(5e-3, 0.1, default=0.1),
        "depth": Integer(4, 8, default=6),
        "l2_leaf_reg": LogUniform(1e-4, 5.0, default=3.0),
        "subsample": Uniform(0.7, 1.0, default=0.8),
        "weights": Option("none", "class", "environment"),
    }
    trials_per_task = 4

    def needs_with(self, hparams: Mapping[str, Value]) -> frozenset[str]:
        return needs_of_weights(hparams)

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        require("catboost")
        check_weights(train, hparams)

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        from catboost import CatBoostClassifier, CatBoostRegressor, Pool

        grown, stopping = stopping_parts(train, hparams, seed)
        own = {name: value for name, value in hparams.items() if name != "weights"}
        estimator = (CatBoostClassifier if train.task == "classification" else CatBoostRegressor)(
            iterations=ROUNDS, random_seed=seed % 2**31, thread_count=1, bootstrap_type="MVS",
            verbose=False, allow_writing_files=False, **own,
        )  # fmt: skip
        estimator.fit(
            Pool(grown.x, grown.y, weight=grown.weights),
            eval_set=Pool(stopping.x, stopping.y, weight=stopping.weights),
            early_stopping_rounds=PATIENCE,
        )
        return EstimatorModel.wrap(estimator, "catboost", train)
