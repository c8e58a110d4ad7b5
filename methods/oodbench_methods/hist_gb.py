"""Gradient boosting of trees on binned features, as in scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oodbench import LogInteger, LogUniform, Method, Predictor, Preset, TrainingRows, Uniform, Value, kit

ROUNDS, PATIENCE = 1000, 20  # at most so many trees; so many without a better loss end the training


class HistGB(Method):
    """Histogram gradient boosting (Friedman 2001; Ke et al. 2017), by scikit-learn.

    It stops early on a tenth of the training rows. `weights` makes environments, classes or both count alike, or trains
    twice, the second time with the errors of the first upweighted (JTT).
    """

    space = {
        "learning_rate": LogUniform(5e-3, 0.1, default=0.1),
        "max_leaf_nodes": LogInteger(2, 200, default=31),
        "min_samples_leaf": LogInteger(1, 64, default=20),
        "max_features": Uniform(0.4, 1.0, default=1.0),
        "l2_regularization": LogUniform(1e-4, 2.0, default=1e-4),
        **kit.BOOSTING_OPTIONS,
    }
    presets = {name: Preset(**preset) for name, preset in kit.BOOSTING_PRESETS.items()}
    trials_per_task = 4
    takes_weights = True

    def needs_with(self, hparams: Mapping[str, Value]) -> frozenset[str]:
        return kit.needs_of_weights(hparams)

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        kit.check_weights(train, hparams)

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        kind = HistGradientBoostingClassifier if train.task == "classification" else HistGradientBoostingRegressor

        def grow(rows: kit.Part, stopping: kit.Part, own: dict[str, Any]) -> Any:
            estimator = kind(max_iter=ROUNDS, n_iter_no_change=PATIENCE, early_stopping=True, random_state=seed, **own)
            held_out = {"X_val": stopping.x, "y_val": stopping.y, "sample_weight_val": stopping.weights}
            with kit.one_thread():
                return estimator.fit(rows.x, rows.y, rows.weights, **held_out)

        return kit.fit_boosting(grow, "sklearn", train, hparams, seed)
