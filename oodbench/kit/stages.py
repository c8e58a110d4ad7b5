"""Methods in several stages: what a later stage takes from an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from oodbench.engine.data import TrainingRows
from oodbench.engine.fitted import FittedModel
from oodbench.engine.rows import Hparams
from oodbench.engine.trainer import Objective, Trainer, stack_hparams
from oodbench.engine.trial import Trial, training_entropy
from oodbench.settings.space import Space

P = TypeVar("P")


def fit_references(
    method: Objective, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer
) -> dict[int, FittedModel]:
    """A model per seed with the defaults of a method, for all trials of the seed."""
    hparams = {name: dimension.default for name, dimension in method.search_space().items()}
    seeds = sorted({trial.seed for trial in trials})
    of_seeds = [Trial(0, hparams, seed, training_entropy("reference", 0, seed)) for seed in seeds]
    return dict(zip(seeds, trainer.fit(method, train, of_seeds), strict=True))


def fit_by_seed(
    space: Space,
    train: Mapping[int, TrainingRows],
    trials: Sequence[Trial],
    fit: Callable[[TrainingRows, Sequence[Trial], Hparams], Sequence[P]],
    device: Any = "cpu",
) -> list[P]:
    """Predictors of the trials, in their order, where those of one seed share work.

    `fit` gets a seed's rows, its trials, and the hyper-parameters of these as a loss method sees them, on the device.
    """
    fitted: dict[int, P] = {}
    for seed in sorted({trial.seed for trial in trials}):
        positions = [position for position, trial in enumerate(trials) if trial.seed == seed]
        of_seed = [trials[position] for position in positions]
        models = fit(train[seed], of_seed, stack_hparams(space, of_seed, device))
        fitted |= zip(positions, models, strict=True)
    return [fitted[position] for position in range(len(trials))]
