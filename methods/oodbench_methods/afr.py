"""Automatic feature reweighting: a last layer refitted to held-out rows that ERM finds hard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from oodbench import LogUniform, Predictor, Trainer, TrainingRows, Trial
from oodbench.kit import balanced_weights, fit_logistic, fit_without_held_out
from oodbench_methods.erm import ERM

HELD_OUT = 0.2  # of the training rows, for the last layer


class AFR(ERM):
    """Automatic feature reweighting (Qiu et al. 2023): held-out rows weigh exp(-gamma p_y) within balanced classes.

    The last layer is pulled to its start with `pull`, which is above 0 here: the problem is solved exactly, not for a
    number of steps. A model with a single output has the logits -f and f.
    """

    tasks = ("classification",)
    takes_weights = True
    pauses = True
    shares_rows = True
    space = {"gamma": LogUniform(1.0, 20.0, default=4.0), "pull": LogUniform(1e-3, 0.4, default=0.1)}

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        models: list[Predictor] = []
        for trial, mask, model in fit_without_held_out(self, train, trials, trainer, HELD_OUT):
            rows = train[trial.seed]
            z, y = model.represent(rows.x[mask]), rows.y[mask]
            start = model.last_layer(rows.x.shape[1])
            start = start if len(start) > 1 else np.concatenate([-start, start])
            logits = z @ start[:, :-1].T + start[:, -1]
            right = np.exp(logits[np.arange(len(y)), y] - np.logaddexp.reduce(logits, 1))
            own = np.ones(len(y)) if rows.weights is None else rows.weights[mask]
            weights = own * balanced_weights(y, own) * np.exp(-float(trial.hparams["gamma"]) * right)
            last = fit_logistic(z, y, rows.classes, 2 * float(trial.hparams["pull"]), weights, toward=start)
            models.append(model.with_last_layer(last, rows.x.shape[1]))
        return models
