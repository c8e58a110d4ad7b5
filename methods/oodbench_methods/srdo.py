"""Reweighting to independent columns: ERM on rows weighted by how likely they would be if columns were independent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oodbench import Integer, Predictor, Trainer, TrainingRows, Trial
from oodbench.kit import independence_weights
from oodbench_methods.erm import ERM


class SRDO(ERM):
    """Sample reweighted decorrelation operator (Shen et al. 2020).

    The weights are 1 / p - 1, p the probability that a row is one of the data rather than one with permuted columns.
    The classifier is a small MLP, cross-fitted over `folds`; ratios beyond 50 are cut.
    """

    pauses = True
    steps_ahead = True
    space = {"folds": Integer(2, 20, default=3, searched=False)}

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        seeds = {trial.seed: train[trial.seed] for trial in trials}
        weights = independence_weights(ERM(), seeds, int(trials[0].hparams["folds"]), trainer)
        weighted = {seed: replace(rows, weights=weights[seed]) for seed, rows in seeds.items()}
        return super().fit_pack(weighted, trials, trainer)
