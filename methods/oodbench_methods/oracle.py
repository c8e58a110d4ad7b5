"""The oracle: ERM on the invariant columns alone, the ceiling for what a method could learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oodbench import Predictor, Trainer, TrainingRows, Trial
from oodbench_methods.erm import ERM


class Oracle(ERM):
    """ERM that is told the invariant columns, where the dataset knows them; a reference on boards, never ranked."""

    needs = frozenset({"invariant"})
    ranked = False
    takes_weights = True
    pauses = True
    shares_rows = True

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        places = {seed: list(rows.invariant or range(rows.x.shape[1])) for seed, rows in train.items()}
        narrow = {
            seed: replace(rows, x=rows.x[:, places[seed]], columns=None, categories=()) for seed, rows in train.items()
        }
        models = trainer.fit(self, narrow, trials)
        return [
            model.on_wider_table(places[trial.seed], train[trial.seed].x.shape[1])
            for trial, model in zip(trials, models, strict=True)
        ]
