"""A multi-layer perceptron with tuned defaults, as in RealMLP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oodbench import Choice, LogUniform, Method, Predictor, TrainingRows, Value
from oodbench.kit import EstimatorModel, TabularNetwork, labels_of, require, stopping_parts

EPOCHS = 256


class RealMLP(Method):
    """A multi-layer perceptron with robust scaling, embeddings of numbers and tuned defaults (Holzmüller, Grinsztajn &
    Steinwart 2024), by the authors' library pytabkit, which knows no weights of rows.

    It keeps the epoch with the least error on a tenth of the training rows. The space has the values of the library's
    own, which draws some of them more often; `lr` and `act` start from its defaults for classification.
    """

    space = {
        "lr": LogUniform(2e-2, 0.3, default=4e-2),
        "num_emb_type": Choice("pbld", "none", "pl", "plr"),
        "add_front_scale": Choice(True, False),
        "p_drop": Choice(0.15, 0.0, 0.3),
        "wd": Choice(2e-2, 0.0),
        "plr_sigma": LogUniform(0.05, 0.5, default=0.1),
        "act": Choice("selu", "relu", "mish"),
        "layers": Choice("3x256", "5x64", "1x512"),
        "ls_eps": Choice(0.1, 0.0),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        require("pytabkit", "realmlp")

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        depth, width = map(int, str(hparams["layers"]).split("x"))
        regression = train.task == "regression"
        left_out = {"layers", "ls_eps"} if regression else {"layers"}  # ls_eps smooths labels
        settings: dict[str, Any] = {name: value for name, value in hparams.items() if name not in left_out}
        settings |= {"n_epochs": EPOCHS, "hidden_sizes": [width] * depth}
        fitted, stopping = stopping_parts(train, None, seed)
        rows, held = (fitted.x, fitted.y), (stopping.x, stopping.y)
        network = TabularNetwork.train("realmlp", rows, held, len(labels_of(train)), settings, seed)
        return EstimatorModel.wrap(network, "realmlp", train)
