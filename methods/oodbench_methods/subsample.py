"""Subsampling: as many rows of each group as the smallest has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oodbench import Predictor, Trainer, TrainingRows, Trial
from oodbench.kit import balanced_draw, row_groups
from oodbench_methods.reweight import Reweight


class Subsample(Reweight):
    """ERM on equally many random rows of each group (SUBG and SUBY of Idrissi et al. 2022), which is an environment, a
    class, or a class within an environment. Each trial draws its own rows; the others have weight 0."""

    pauses = True
    shares_rows = True

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        groups = {seed: row_groups(rows, trials[0].hparams["by"]) for seed, rows in train.items()}
        drawn = [
            replace(train[trial.seed], weights=balanced_draw(groups[trial.seed], trial.entropy)) for trial in trials
        ]
        return list(trainer.fit(self, drawn, trials))
