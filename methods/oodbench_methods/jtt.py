"""Just train twice: the rows that a short training gets wrong count more in a second one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from oodbench import LogUniform, Predictor, Trainer, TrainingRows, Trial, Uniform
from oodbench_methods.erm import ERM


class JTT(ERM):
    """Just train twice (Liu et al. 2021): ERM for a share of the steps, its errors upweighted, then ERM from scratch.

    For classification only: what an error is in a regression, the paper does not say.
    """

    tasks = ("classification",)
    takes_weights = True
    shares_rows = True
    space = {"upweight": LogUniform(1.0, 10**2.5, default=10.0), "share": Uniform(0.2, 0.8, default=0.5)}

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        whole = trainer.setup.recipe.steps
        steps = [max(1, round(float(trial.hparams["share"]) * whole)) for trial in trials]
        first = trainer.fit(self, train, trials, steps)
        weighted = []
        for trial, model in zip(trials, first, strict=True):
            rows = train[trial.seed]
            wrong = model.predict(rows.x) != rows.y
            weighted.append(rows.weighted(np.where(wrong, float(trial.hparams["upweight"]), 1.0)))
        return list(trainer.fit(self, weighted, trials))
