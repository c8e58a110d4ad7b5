"""The training rows of a pack on its device, and the batches its trials draw from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from oodbench.engine.chance import shuffle
from oodbench.engine.columns import Column, Places
from oodbench.engine.data import TrainingRows
from oodbench.engine.device import send
from oodbench.engine.trial import Order, Setup, Trial

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
    """Training rows of the pack's trials, which come seed by seed.

    The trials of a seed see its rows in one order, so that a batch is gathered once for all of them. It costs what its
    own rows cost, however many others there are.
    """

    def __init__(self, train: PackRows, trials: Sequence[Trial], setup: Setup) -> None:
        parts = [train[trial.seed] for trial in trials] if isinstance(train, Mapping) else list(train)
        first = parts[0]
        self.model, self.device = setup.model, torch.device(setup.device)
        self.classification = first.task == "classification"
        self.rows, self.features = first.x.shape
        self.size = setup.recipe.batch_rows(self.rows)
        self.full = self.size == self.rows
        repeated = setup.model.learns_representation  # what a linear model sees does not change
        self.explored_rows = setup.recipe.explored_rows(self.rows, self.classification, repeated)
        self.orders = [trial.order for trial in trials]
        self.epoch, self.shuffled = -1, dict[Order, Tensor]()

        self.x = Column([part.x for part in parts], self.orders, np.float32, self.device)
        targets = np.int64 if self.classification else np.float32
        self.y = Column([part.y for part in parts], self.orders, targets, self.device)
        self.weights: Column | None = None
        if any(part.weights is not None for part in parts):
            equal = np.ones(self.rows)
            weights = [equal if part.weights is None else part.weights for part in parts]
            self.weights = Column(weights, self.orders, np.float32, self.device)
        labels = [part.environment for part in parts if part.environment is not None]
        self.environment = Column(labels, self.orders, np.int64, self.device) if labels else None
        self.environments = 1 + max((int(label.max()) for label in labels), default=-1)

    def batch(self, step: int, explored: Tensor | None) -> Batch:
        """The rows of a step: all of them, or a share, which is the same for all trials of a seed."""
        if self.full:
            return replace(self.whole, explored=explored)
        epoch, number = divmod(step, self.rows // self.size)
        if epoch != self.epoch:
            self.epoch, self.shuffled = epoch, self._shuffle(f"epoch {epoch}")
        rows = slice(number * self.size, (number + 1) * self.size)
        return self._make({order: places[rows] for order, places in self.shuffled.items()}, explored)

    @cached_property
    def whole(self) -> Batch:
        """All rows."""
        return self._make(None)

    def part(self, explored: Tensor | None) -> Batch:
        """The part of the rows to which explorers fit, always the same."""
        return self._make(self._part, explored)

    @cached_property
    def _part(self) -> Places:
        return {order: places[: self.explored_rows].sort().values for order, places in self._shuffle("part").items()}

    def _shuffle(self, use: str) -> dict[Order, Tensor]:
        return {order: send(shuffle(self.rows, order, use), self.device) for order in dict.fromkeys(self.orders)}

    def _make(self, places: Places | None, explored: Tensor | None = None) -> Batch:
        """The rows at these places, or all."""
        weights = None if self.weights is None else self.weights.stack(places)
        environment = environments = None
        if self.environment is not None:
            environment = self.environment.stack(places)
            environments = self.environment.stack(places, self._one_hot)
            if weights is not None:
                environments = environments * weights.unsqueeze(1)
        x = self.x.stack_blocks(places).transpose(1, 2)
        columns = self.model.columns(x).contiguous()
        if columns.data_ptr() == x.data_ptr() and places is None:
            columns = columns.clone()  # a method may write into its batch, and not into the rows
        return Batch(
            columns,
            self.y.stack(places),
            normalized(weights),
            environment,
            normalized(environments),
            explored if explored is None or places is None else normalized(self._share(explored, places)),
        )

    def _one_hot(self, labels: Tensor) -> Tensor:
        return one_hot(labels, self.environments).T.float()  # [environment, row]

    def _share(self, explored: Tensor, places: Places) -> Tensor:
        """Of each trial's sub-populations [trial, row] or [trial, k, row], what falls on the rows at these places."""
        if len(places) == 1:
            return explored.index_select(-1, places[self.orders[0]])
        shares = [own.index_select(-1, places[order]) for own, order in zip(explored, self.orders, strict=True)]
        return torch.stack(shares)


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
