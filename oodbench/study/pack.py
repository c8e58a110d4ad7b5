"""Packs: trials of a study that train as one tensor program, and what comes back of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oodbench.engine.checkpoint import Checkpoint
from oodbench.engine.trial import Trial
from oodbench.settings.space import Value


@dataclass(frozen=True)
class Pack:
    """Trials of one study that share array shapes and train as one tensor program."""

    study_id: str
    index: int
    trials: tuple[Trial, ...]
    without: int | None = None  # the place of a training environment that they do not have, and are scored on
    rung: int = 0  # of a search by halving

    @property
    def seeds(self) -> list[int]:
        return sorted({trial.seed for trial in self.trials})


@dataclass
class PackResult:
    """What a worker hands back: per trial a predictor or the reason why there is none.

    Tune words it for a log that nobody reads: models would take half of the driver's time.
    """

    predictors: list[Any] = field(repr=False)
    validation: list[dict[str, Any]] = field(repr=False)  # one row per trial and validation environment with a score
    failures: dict[int, str] = field(default_factory=dict)  # position in the pack -> reason
    seconds: float = 0.0
    gradient_steps: int = 0
    row_visits: int = 0
    device: str = "cpu"
    hparams: Mapping[str, Value] | None = None  # where the search decided on them
    stopped: bool = False  # before the end of its training, by the scheduler
    checkpoint: Checkpoint | None = field(default=None, repr=False)  # of trainings that may go on
    clock: float = 0.0  # seconds that the study's search had taken when it came, where that is limited

    @classmethod
    def failed(cls, trials: int, reason: str, device: str) -> PackResult:
        return cls([None] * trials, [], dict.fromkeys(range(trials), reason), device=device)

    @classmethod
    def joined(cls, parts: Sequence[tuple[Sequence[int], PackResult]]) -> PackResult:
        """A pack that was trained in parts: each has the positions in the pack of what it trained."""
        whole = cls([None for positions, _ in parts for _ in positions], [], device=parts[0][1].device)
        for positions, part in parts:
            whole.failures |= {positions[own]: reason for own, reason in part.failures.items()}
            for position, predictor in zip(positions, part.predictors, strict=True):
                whole.predictors[position] = predictor
            whole.validation += part.validation
            whole.seconds += part.seconds
            whole.gradient_steps += part.gradient_steps
            whole.row_visits += part.row_visits
        paused = [part.checkpoint for _, part in parts if part.checkpoint is not None]
        whole.checkpoint = Checkpoint.join(paused) if paused else None
        return whole


def divide(
    study_id: str,
    trials: Sequence[Trial],
    alike: Callable[[Trial], Hashable],
    capacity: Callable[[Trial], int],
    most_seeds: Callable[[Trial], int],
    without: int | None = None,
    first: int = 0,
    rung: int = 0,
) -> list[Pack]:
    """Packs of at most `capacity` trials on `most_seeds` seeds that are `alike`: blocks of configurations x seeds.

    A block takes all configurations of few seeds rather than the reverse, since trials of one seed share its
    rows. The division depends on the trials alone, never on the machine, so that results do not either. The packs are
    numbered from `first` on.
    """
    groups: dict[Hashable, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(alike(trial), []).append(trial)
    packs: list[Pack] = []
    for group in groups.values():
        room = max(1, capacity(group[0]))
        seeds = sorted({trial.seed for trial in group})
        configurations = sorted({trial.configuration for trial in group})
        for part in _even_slices(configurations, room):
            for few in _even_slices(seeds, max(1, min(room // len(part), most_seeds(group[0])))):
                block = tuple(
                    sorted(
                        (trial for trial in group if trial.seed in few and trial.configuration in part),
                        key=lambda trial: (trial.seed, trial.configuration),
                    )
                )
                packs.append(Pack(study_id, first + len(packs), block, without, rung))
    return packs


def _even_slices(items: list[int], most: int) -> list[list[int]]:
    count = -(-len(items) // most)
    return [list(part) for part in np.array_split(np.array(items), count)]
