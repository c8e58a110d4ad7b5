"""Gradient boosting of trees, as in CatBoost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oodbench import Integer, LogUniform, Method, Predictor, Preset, TrainingRows, Uniform, Value, kit

ROUNDS, PATIENCE = 1000, 20  # at most so many trees; so many without a better loss end the training


class CatBoost(Method):
    """Gradient boosting with ordered, symmetric trees (Prokhorenkova et al. 2018), by the library of that name.

    It stops early on a tenth of the training rows. `weights` makes environments, classes or both count alike, or trains
    twice, the second time with the errors of the first upweighted (JTT).
    """

    space = {
        "learning_rate": LogUniform(5e-3, 0.1, default=0.1),
        "depth": Integer(4, 8, default=6),
        "l2_leaf_reg": LogUniform(1e-4, 5.0, default=3.0),
        "subsample": Uniform(0.7, 1.0, default=0.8),
        **kit.BOOSTING_OPTIONS,
    }
    presets = {name: Preset(**preset) for name, preset in kit.BOOSTING_PRESETS.items()}
    trials_per_task = 4
    takes_weights = True

    def needs_with(self, hparams: Mapping[str, Value]) -> frozenset[str]:
        return kit.needs_of_weights(hparams)

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        kit.require("catboost")
        kit.check_weights(train, hparams)

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        from catboost import CatBoostClassifier, CatBoostRegressor, Pool

        kind = CatBoostClassifier if train.task == "classification" else CatBoostRegressor
        fixed = {"bootstrap_type": "MVS", "random_seed": seed % 2**31, "thread_count": 1}

        def grow(rows: kit.Part, stopping: kit.Part, own: dict[str, Any]) -> Any:
            estimator = kind(iterations=ROUNDS, verbose=False, allow_writing_files=False, **fixed, **own)
            held_out = Pool(stopping.x, stopping.y, weight=stopping.weights)
            pool = Pool(rows.x, rows.y, weight=rows.weights)
            return estimator.fit(pool, eval_set=held_out, early_stopping_rounds=PATIENCE)

        return kit.fit_boosting(grow, "catboost", train, hparams, seed)
