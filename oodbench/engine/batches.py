"""The training rows of a pack on its device, and the batches its trials draw from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodbench.engine.chance import Chance
from oodbench.engine.data import TrainingRows
from oodbench.engine.trial import Setup, Trial

PackRows = Mapping[int, TrainingRows] | Sequence[TrainingRows]
"""The rows of every seed, or of every trial."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a step on the device."""

    columns: Tensor  # [seed or trial, feature (+ 1 for a bias), row]
    y: Tensor  # [trial, row]
    weights: Tensor | None = None  # [trial, row], summing to one
    environment: Tensor | None = None  # [trial, row]
    environments: Tensor | None = None  # [trial, environment, row], each summing to one
    explored: Tensor | None = None  # [trial, row] or [trial, k, row]

    def take(self, rows: Tensor) -> Batch:
        """Each trial's own rows [trial, row] of it."""
        return Batch(
            take_columns(self.columns, rows),
            self.y.gather(1, rows),
            share_of(self.weights, rows),
            None if self.environment is None else self.environment.gather(1, rows),
            share_of(self.environments, rows),
            share_of(self.explored, rows),
        )


class StackedRows:
    """Training rows of the pack's trials, which come seed by seed."""

    def __init__(self, train: PackRows, trials: Sequence[Trial], setup: Setup, chance: Chance) -> None:
        parts = [train[trial.seed] for trial in trials] if isinstance(train, Mapping) else list(train)
        first = parts[0]
        self.chance, self.device = chance, torch.device(setup.device)
        self.classification = first.task == "classification"
        self.rows, self.features = first.x.shape
        self.size = setup.recipe.batch_rows(self.rows)
        self.full = self.size == self.rows

        tables = _of_blocks(parts)  # trials that share their table multiply it once
        x = torch.stack([torch.from_numpy(part.x.T.astype(np.float32, order="C")) for part in tables])
        y = self._per_trial(parts, lambda part: _targets(part.y, self.classification))
        environment = environments = weights = None
        if any(part.weights is not None for part in parts):
            weights = self._per_trial(parts, _weights)
        self.environments = 0
        if first.environment is not None:
            environment = self._per_trial(parts, lambda part: torch.tensor(part.environment))
            self.environments = int(environment.max()) + 1
            environments = self._per_trial(parts, self._one_hot)
            if weights is not None:
                environments = environments * weights.unsqueeze(1)
        self.counted = Batch(setup.model.columns(x).to(self.device), y, weights, environment, environments)
        self.whole = replace(self.counted, weights=normalized(weights), environments=normalized(environments))

    def batch(self, step: int, explored: Tensor | None) -> Batch:
        """The rows of a step: all of them, or each trial's own share."""
        if self.full:
            return replace(self.whole, explored=explored)
        start = step % (self.rows // self.size)
        if start == 0:
            self.shuffled = self.chance.permutation(self.rows)
        rows = self.shuffled[:, start * self.size : (start + 1) * self.size]  # [trial, row]
        return replace(self.counted, explored=explored).take(rows)

    def _per_trial(self, parts: Sequence[TrainingRows], of: Any) -> Tensor:
        """[trial, ...]; without a copy where all trials share one set of rows."""
        distinct = list({id(part): part for part in parts}.values())
        stacked = torch.stack([of(part) for part in distinct]).to(self.device)
        if len(distinct) == 1:
            return stacked.expand(len(parts), *stacked.shape[1:])
        places = {id(part): place for place, part in enumerate(distinct)}
        return stacked[torch.tensor([places[id(part)] for part in parts], device=self.device)]

    def _one_hot(self, part: TrainingRows) -> Tensor:
        labels = torch.tensor(part.environment)
        return torch.nn.functional.one_hot(labels, self.environments).T.float()  # [environment, row]


def _of_blocks(parts: Sequence[TrainingRows]) -> list[TrainingRows]:
    """A part for every block of trials with one table x, where blocks are equally long; else one for every trial."""
    starts = [place for place, part in enumerate(parts) if place == 0 or part.x is not parts[place - 1].x]
    lengths = set(np.diff([*starts, len(parts)]))
    return [parts[start] for start in starts] if len(lengths) == 1 else list(parts)


def take_columns(columns: Tensor, rows: Tensor) -> Tensor:
    """Each trial's own rows [trial, row] of columns [seed or trial, feature, row]: [trial, feature, row]."""
    seeds = torch.arange(len(columns), device=columns.device).repeat_interleave(len(rows) // len(columns))
    return columns[seeds.unsqueeze(1), :, rows].transpose(1, 2).contiguous()


def share_of(weights: Tensor | None, rows: Tensor) -> Tensor | None:
    """The weights [trial, row] or [trial, k, row] of each trial's own rows [trial, row], summing to one."""
    if weights is None:
        return None
    if weights.dim() == 3:
        rows = rows.unsqueeze(1).expand(-1, weights.shape[1], -1)
    return normalized(weights.gather(-1, rows))


def normalized(weights: Tensor | None) -> Tensor | None:
    return None if weights is None else weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)


def _targets(y: NDArray[Any], classification: bool) -> Tensor:
    return torch.from_numpy(y.astype(np.int64 if classification else np.float32))


def _weights(part: TrainingRows) -> Tensor:
    return torch.ones(len(part)) if part.weights is None else torch.tensor(part.weights, dtype=torch.float32)
