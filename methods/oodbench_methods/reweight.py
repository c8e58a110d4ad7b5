"""Reweighting: each group counts the same, however many rows it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oodbench import Option, Predictor, Trainer, TrainingRows, Trial, Value
from oodbench.kit import GROUPINGS, balanced_weights, check_groups, needs_of_groups, row_groups
from oodbench_methods.erm import ERM


class Reweight(ERM):
    """ERM with balanced groups (RWG and RWY of Idrissi et al. 2022): a row's weight is one over the rows of its group,
    which is its environment, its class, or its class within its environment."""

    space = {"by": Option(*GROUPINGS)}
    takes_weights = True
    pauses = True
    shares_rows = True

    def needs_with(self, hparams: Mapping[str, Value]) -> frozenset[str]:
        return needs_of_groups(hparams)

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_groups(train, hparams)

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        by = trials[0].hparams["by"]
        weighted = {
            seed: rows.weighted(balanced_weights(row_groups(rows, by), rows.weights)) for seed, rows in train.items()
        }
        return super().fit_pack(weighted, trials, trainer)
