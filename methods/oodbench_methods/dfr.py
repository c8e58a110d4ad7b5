"""Deep feature reweighting: the representation of ERM, and a last layer refitted to balanced groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from oodbench import Choice, Predictor, Trainer, TrainingRows, Trial
from oodbench.kit import balanced_weights, fit_logistic, fit_without_held_out, row_groups
from oodbench_methods.erm import ERM

HELD_OUT = 0.2  # of the training rows, for the last layer


class DFR(ERM):
    """Deep feature reweighting (Kirichenko et al. 2023), with its last layer fitted to training rows held out.

    Groups are classes within environments. They are balanced by weights, where the paper draws balanced subsets and
    averages, and the penalty is L2, where the paper's is L1.
    """

    needs = frozenset({"environments"})
    tasks = ("classification",)
    takes_weights = True
    pauses = True
    shares_rows = True
    space = {"C": Choice(1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01)}

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        models: list[Predictor] = []
        for trial, mask, model in fit_without_held_out(self, train, trials, trainer, HELD_OUT):
            rows = train[trial.seed]
            own = np.ones(mask.sum()) if rows.weights is None else rows.weights[mask]
            weights = own * balanced_weights(row_groups(rows)[mask], own)
            penalty = 1 / (float(trial.hparams["C"]) * own.sum())
            last = fit_logistic(model.represent(rows.x[mask]), rows.y[mask], rows.classes, penalty, weights)
            models.append(model.with_last_layer(last, rows.x.shape[1]))
        return models
