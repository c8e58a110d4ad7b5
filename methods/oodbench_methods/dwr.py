"""Decorrelated weighting: ERM on rows that are weighted so that their columns are not correlated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oodbench import Choice, Integer, LogUniform, Predictor, Trainer, TrainingRows, Trial
from oodbench.kit import decorrelating_weights
from oodbench_methods.erm import ERM


class DWR(ERM):
    """Decorrelated weighting regression (Kuang et al. 2020; Shen et al. 2020), for any model and loss.

    `order` is the highest power of the columns that is decorrelated. The weights come first, for every seed and order,
    rather than in turns with the model; `spread` keeps them from collapsing where there are many columns.
    """

    pauses = True
    steps_ahead = True
    space = {
        "order": Choice(1, 2),
        "spread": LogUniform(1e-6, 1e3, default=1e-3, searched=False),
        "weight_steps": Integer(1, 100_000, default=100, searched=False),
    }

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        weighted: dict[tuple[int, int], TrainingRows] = {}
        for trial in trials:
            seed, order, option = trial.seed, int(trial.hparams["order"]), trial.hparams
            if (seed, order) not in weighted:
                spread, steps = float(option["spread"]), int(option["weight_steps"])
                weights = decorrelating_weights(train[seed].x, order, spread, steps, trainer)
                weighted[seed, order] = replace(train[seed], weights=weights)
        rows = [weighted[trial.seed, int(trial.hparams["order"])] for trial in trials]
        return list(trainer.fit(self, rows, trials))
