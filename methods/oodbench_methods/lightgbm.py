"""Gradient boosting of trees, as in LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oodbench import LogInteger, LogUniform, Method, Predictor, Preset, TrainingRows, Uniform, Value, kit

ROUNDS, PATIENCE = 1000, 20  # at most so many trees; so many without a better loss end the training


class LightGBM(Method):
    """Gradient boosting with trees grown leaf by leaf (Ke et al. 2017), by the library of that name.

    It stops early on a tenth of the training rows. `weights` makes environments, classes or both count alike, or trains
    twice, the second time with the errors of the first upweighted (JTT).
    """

    space = {
        "learning_rate": LogUniform(5e-3, 0.1, default=0.1),
        "num_leaves": LogInteger(2, 200, default=31),
        "min_child_samples": LogInteger(1, 64, default=20),
        "colsample_bytree": Uniform(0.4, 1.0, default=1.0),
        "subsample": Uniform(0.7, 1.0, default=1.0),
        "reg_alpha": Uniform(1e-4, 1.0, default=1e-4),
        "reg_lambda": Uniform(1e-4, 2.0, default=1e-4),
        **kit.BOOSTING_OPTIONS,
    }
    presets = {name: Preset(**preset) for name, preset in kit.BOOSTING_PRESETS.items()}
    trials_per_task = 4
    takes_weights = True

    def needs_with(self, hparams: Mapping[str, Value]) -> frozenset[str]:
        return kit.needs_of_weights(hparams)

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        kit.require("lightgbm")
        kit.check_weights(train, hparams)

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        import lightgbm

        classes = len(np.unique(train.y)) if train.task == "classification" else 0
        objective = {0: "regression", 2: "binary"}.get(classes, "multiclass")
        fixed = {"objective": objective, "num_class": classes if classes > 2 else 1, "bagging_freq": 1}
        quiet = {"seed": seed % 2**31, "deterministic": True, "num_threads": 1, "verbosity": -1}

        def grow(rows: kit.Part, stopping: kit.Part, own: dict[str, Any]) -> kit.LightGBMTrees:
            fitted = lightgbm.Dataset(rows.x, rows.y, weight=rows.weights)
            held_out = lightgbm.Dataset(stopping.x, stopping.y, weight=stopping.weights, reference=fitted)
            stop = lightgbm.early_stopping(PATIENCE, verbose=False)
            settings = {**own, **fixed, **quiet}
            booster = lightgbm.train(settings, fitted, ROUNDS, valid_sets=[held_out], callbacks=[stop])
            return kit.LightGBMTrees(booster.model_to_string(), classes > 0)

        return kit.fit_boosting(grow, "lightgbm", train, hparams, seed)
