"""Methods in several stages: what a later stage takes from an earlier one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oodbench.engine.data import TrainingRows
from oodbench.engine.fitted import FittedModel
from oodbench.engine.trainer import Objective, Trainer
from oodbench.engine.trial import Trial, training_entropy


def fit_references(
    method: Objective, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer
) -> dict[int, FittedModel]:
    """A model per seed with the defaults of a method, for all trials of the seed."""
    hparams = {name: dimension.default for name, dimension in method.search_space().items()}
    seeds = sorted({trial.seed for trial in trials})
    of_seeds = [Trial(0, hparams, seed, training_entropy("reference", 0, seed)) for seed in seeds]
    return dict(zip(seeds, trainer.fit(method, train, of_seeds), strict=True))
