"""Subsampling: as many rows of each group as the smallest has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oodbench import Option, Predictor, Trainer, TrainingRows, Trial, Value
from oodbench.kit import GROUPINGS, balanced_draw, check_groups, needs_of_groups, row_groups
from oodbench_methods.erm import ERM


class Subsample(ERM):
    """ERM on equally many random rows of each group (SUBG and SUBY of Idrissi et al. 2022), which is an environment, a
    class, or a class within an environment. Each trial draws its own rows; the others have weight 0."""

    space = {"by": Option(*GROUPINGS)}

    def needs_with(self, hparams: Mapping[str, Value]) -> frozenset[str]:
        return needs_of_groups(hparams)

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_groups(train, hparams)

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        groups = {seed: row_groups(rows, trials[0].hparams["by"]) for seed, rows in train.items()}
        drawn = [
            replace(train[trial.seed], weights=balanced_draw(groups[trial.seed], trial.entropy)) for trial in trials
        ]
        return list(trainer.fit(self, drawn, trials))
