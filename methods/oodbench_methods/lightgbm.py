"""Gradient boosting of trees, as in LightGBM."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oodbench import LogInteger, LogUniform, Method, Option, Predictor, TrainingRows, Uniform, Value
from oodbench.kit import EstimatorModel, LightGBMTrees, check_weights, needs_of_weights, require, stopping_parts

ROUNDS, PATIENCE = 1000, 20  # at most so many trees; so many without a better loss end the training


class LightGBM(Method):
    """Gradient boosting with trees grown leaf by leaf (Ke et al. 2017), by the library of that name.

    It stops early on a tenth of the training rows. `weights` makes the classes or the environments count alike.
    """

    space = {
        "learning_rate": LogUniform(5e-3, 0.1, default=0.1),
        "num_leaves": LogInteger(2, 200, default=31),
        "min_child_samples": LogInteger(1, 64, default=20),
        "colsample_bytree": Uniform(0.4, 1.0, default=1.0),
        "subsample": Uniform(0.7, 1.0, default=1.0),
        "reg_alpha": Uniform(1e-4, 1.0, default=1e-4),
        "reg_lambda": Uniform(1e-4, 2.0, default=1e-4),
        "weights": Option("none", "class", "environment"),
    }
    trials_per_task = 4

    def needs_with(self, hparams: Mapping[str, Value]) -> frozenset[str]:
        return needs_of_weights(hparams)

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        require("lightgbm")
        check_weights(train, hparams)

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        import lightgbm

        grown, stopping = stopping_parts(train, hparams, seed)
        classes = len(np.unique(train.y)) if train.task == "classification" else 0
        objective = {0: "regression", 2: "binary"}.get(classes, "multiclass")
        own = {name: value for name, value in hparams.items() if name != "weights"}
        fixed = {"objective": objective, "num_class": classes if classes > 2 else 1, "bagging_freq": 1}
        quiet = {"seed": seed % 2**31, "deterministic": True, "num_threads": 1, "verbosity": -1}
        rows = lightgbm.Dataset(grown.x, grown.y, weight=grown.weights)
        booster = lightgbm.train(
            {**own, **fixed, **quiet},
            rows,
            ROUNDS,
            valid_sets=[lightgbm.Dataset(stopping.x, stopping.y, weight=stopping.weights, reference=rows)],
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        return EstimatorModel.wrap(LightGBMTrees(booster.model_to_string(), classes > 0), "lightgbm", train)
