"""Many perceptrons in one, as in TabM."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Choice, Integer, LogInteger, LogUniform, Method, Predictor, TrainingRows, Uniform, Value
from oodbench.kit import EstimatorModel, TabularNetwork, labels_of, require, stopping_parts

EPOCHS, PATIENCE = 1000, 16  # at most so many epochs; so many without a smaller error end the training
MEMBERS = 32


class TabM(Method):
    """An ensemble of perceptrons that share most of their weights (Gorishniy, Kotelnikov & Babenko 2025), by the
    library pytabkit, which knows no weights of rows.

    It stops early on a tenth of the training rows. The space is close to the library's own, which has `tabm-mini` and
    `pwl` only; the first values are the library's defaults.
    """

    space = {
        "lr": LogUniform(1e-4, 3e-3, default=2e-3),
        "weight_decay": Choice(0.0, 1e-4, 1e-3, 1e-2, 1e-1),
        "n_blocks": Integer(2, 5, default=3),
        "d_block": LogInteger(128, 1024, default=512),
        "dropout": Uniform(0.0, 0.5, default=0.1),
        "arch_type": Choice("tabm", "tabm-mini"),
        "num_emb_type": Choice("none", "pwl"),
        "num_emb_n_bins": LogInteger(2, 128, default=48),
        "d_embedding": Integer(8, 32, default=16),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        require("pytabkit", "tabm")

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        fixed = {"n_epochs": EPOCHS, "patience": PATIENCE, "tabm_k": MEMBERS, "batch_size": "auto"}
        fitted, stopping = stopping_parts(train, None, seed)
        rows, held = (fitted.x, fitted.y), (stopping.x, stopping.y)
        network = TabularNetwork.train("tabm", rows, held, len(labels_of(train)), {**hparams, **fixed}, seed)
        return EstimatorModel.wrap(network, "tabm", train)
