"""Trials, and the packs they train in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oodbench.engine.models import Model
from oodbench.engine.recipe import Recipe

if TYPE_CHECKING:
    from oodbench.settings.space import Value


CACHE_BYTES = 4_000_000  # activations of a pack; more, and they leave the cache (benchmarks/test_pack.py)
DEVICE_BYTES = 512_000_000  # activations of one layer on a GPU
ROWS_BYTES = 1 << 30  # training rows of a pack that trains in batches
NUMBER_BYTES = 12  # of a number of these, for a method with a copy of its own: double, and single as it trains on it
MOST_TRIALS = 64
MOST_TRIALS_ON_GPU = 1024

Order = tuple[int, int]
"""What the order of a trial's rows depends on: its seed, and the repeat of the search."""


@dataclass(frozen=True)
class Trial:
    """Hyper-parameters and a seed. `entropy` feeds the training's own generator and nothing else.

    Examples:
        >>> rows, penalty = train[trial.seed], float(trial.hparams["penalty"])
    """

    configuration: int
    hparams: Mapping[str, Value]
    seed: int
    entropy: int
    repeat: int = 0  # of the search

    @classmethod
    def of(cls, method: str, configuration: int, hparams: Mapping[str, Value], seed: int, repeat: int) -> Trial:
        """A trial of the method of that name, in a search or a repeat of it."""
        return cls(configuration, hparams, seed, training_entropy(method, configuration, seed, repeat), repeat)

    @property
    def order(self) -> Order:
        """Trials for which it is equal see their rows in the same order."""
        return self.seed, self.repeat


@dataclass(frozen=True)
class Setup:
    """What is the same for every method on one dataset: the model family, the recipe and the device.

    Examples:
        >>> trainer = Trainer(Setup(Mlp(width=(20, 10)), Recipe(steps=500)))
    """

    model: Model
    recipe: Recipe
    device: str = "cpu"


def training_entropy(method: str, configuration: int, seed: int, repeat: int = 0) -> int:
    """A number for one training's generator, unrelated to every other training's."""
    key = (repeat,) if repeat else ()
    sequence = np.random.SeedSequence([seed, configuration, *method.encode()], spawn_key=key)
    return int(sequence.generate_state(1, np.uint32)[0])


def trials_that_fit(setup: Setup, rows: int, outputs: int) -> int:
    """How many trials train fastest together: as many as keep their activations in the cache."""
    per_trial = 4 * setup.recipe.batch_rows(rows) * sum(setup.model.units(outputs))
    on_gpu = setup.device.startswith("cuda")
    room = (DEVICE_BYTES if on_gpu else CACHE_BYTES) // per_trial
    return max(1, min(room, MOST_TRIALS_ON_GPU if on_gpu else MOST_TRIALS))


def seeds_that_fit(setup: Setup, rows: int, features: int) -> int:
    """On how many seeds a pack may train at most: it holds the rows of each. Few rows are no reason to divide it."""
    if setup.recipe.batch_rows(rows) == rows:
        return MOST_TRIALS_ON_GPU
    return max(1, ROWS_BYTES // (NUMBER_BYTES * rows * features))
