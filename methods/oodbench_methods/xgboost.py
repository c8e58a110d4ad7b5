"""Gradient boosting of trees, as in XGBoost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oodbench import LogInteger, LogUniform, Method, Predictor, Preset, TrainingRows, Uniform, Value, kit

ROUNDS, PATIENCE = 1000, 20  # at most so many trees; so many without a better loss end the training


class XGBoost(Method):
    """Gradient boosting with regularized trees (Chen & Guestrin 2016), by the library of that name.

    It stops early on a tenth of the training rows. `weights` makes environments, classes or both count alike, or trains
    twice, the second time with the errors of the first upweighted (JTT).
    """

    space = {
        "learning_rate": LogUniform(5e-3, 0.1, default=0.1),
        "max_depth": LogInteger(4, 10, default=6),
        "min_child_weight": LogUniform(1e-3, 5.0, default=1.0),
        "subsample": Uniform(0.6, 1.0, default=1.0),
        "colsample_bytree": Uniform(0.6, 1.0, default=1.0),
        "reg_alpha": Uniform(1e-4, 5.0, default=1e-4),
        "reg_lambda": Uniform(1e-4, 5.0, default=1.0),
        **kit.BOOSTING_OPTIONS,
    }
    presets = {name: Preset(**preset) for name, preset in kit.BOOSTING_PRESETS.items()}
    trials_per_task = 4
    takes_weights = True

    def needs_with(self, hparams: Mapping[str, Value]) -> frozenset[str]:
        return kit.needs_of_weights(hparams)

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        kit.require("xgboost")
        kit.check_weights(train, hparams)

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        from xgboost import XGBClassifier, XGBRegressor

        kind = XGBClassifier if train.task == "classification" else XGBRegressor

        def grow(rows: kit.Part, stopping: kit.Part, own: dict[str, Any]) -> Any:
            estimator = kind(n_estimators=ROUNDS, early_stopping_rounds=PATIENCE, random_state=seed, n_jobs=1, **own)
            return estimator.fit(
                *(rows.x, rows.y),
                sample_weight=rows.weights,
                eval_set=[(stopping.x, stopping.y)],
                sample_weight_eval_set=None if stopping.weights is None else [stopping.weights],
                verbose=False,
            )

        return kit.fit_boosting(grow, "xgboost", train, hparams, seed)
