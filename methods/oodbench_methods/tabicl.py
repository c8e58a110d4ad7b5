"""A network that was trained on synthetic tables and reads the training rows, as in TabICL."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Choice, LogUniform, Method, Option, Predictor, TrainingRows, Value
from oodbench.kit import EstimatorModel, InContextRows, class_numbers, find_weights, require


class TabICL(Method):
    """In-context learning: a network with given weights sees all training rows beside those to predict (Qu, Holzmüller,
    Varoquaux & Le Morvan 2025), by the authors' library of that name, which knows no weights of rows.

    It trains nothing, so it stops nothing early. The weights are a file that the library does not bring.
    """

    space = {
        "norm": Choice("none+power", "none", "power", "quantile", "robust"),  # the members of the ensemble take turns
        "feat_shuffle_method": Choice("latin", "random", "shift"),
        "outlier_threshold": LogUniform(4.0, 12.0, default=4.0),
        "n_estimators": Option(8, 1, 2, 4, 16, 32),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        require("tabicl")
        find_weights(train.task == "classification")

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        own = {name: value for name, value in hparams.items() if name != "norm"}
        settings = {**own, "norm_methods": str(hparams["norm"]).split("+"), "random_state": seed % 2**31}
        rows = InContextRows.of(train.x, class_numbers(train), settings, train.task == "classification")
        return EstimatorModel.wrap(rows, "tabicl", train)
