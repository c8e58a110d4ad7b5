"""What the trials of a pack know of their rows, kept once for those that have it in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from oodbench.engine.trial import Order

Places = Mapping[Order, Tensor]
"""The numbers of some rows [row] in every order."""


class Column:
    """A number or vector of every row, for every trial. The numbers of a row lie side by side: quick to gather."""

    def __init__(
        self, arrays: Sequence[NDArray[Any]], orders: Sequence[Order], dtype: DTypeLike, device: torch.device
    ) -> None:
        tensors = {
            key: _tensor(array, dtype).to(device) for key, array in {id(array): array for array in arrays}.items()
        }
        keys = [(id(array), order) for array, order in zip(arrays, orders, strict=True)]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        self.distinct = [(tensors[array], order) for array, order in numbers]  # [row] or [row, feature]
        self.of_trials = [numbers[key] for key in keys]
        self.places = torch.tensor(self.of_trials).to(device)  # once: a copy in every step would wait for a GPU

    def take(self, places: Places | None) -> list[Tensor]:
        """The rows at these places, or all, of each distinct one."""
        return [rows if places is None else rows.index_select(0, places[order]) for rows, order in self.distinct]

    def stack(self, places: Places | None, make: Callable[[Tensor], Tensor] = torch.Tensor.detach) -> Tensor:
        """What `make` makes of these rows, or of all: [trial, ...]; without a copy where all trials have the same."""
        stacked = torch.stack([make(rows) for rows in self.take(places)])
        if len(stacked) == 1:
            return stacked.expand(len(self.of_trials), *stacked.shape[1:])
        return stacked[self.places]

    def stack_blocks(self, places: Places | None) -> Tensor:
        """These rows, or all, of every block of trials that have the same, where blocks are equally long: [block, ...].

        Trials of a block multiply their table once. Else they are stacked for every trial.
        """
        taken, own = self.take(places), self.of_trials
        if len(taken) == 1:
            return taken[0].unsqueeze(0)
        starts = [place for place in range(len(own)) if place == 0 or own[place] != own[place - 1]]
        alike = len(set(np.diff([*starts, len(own)]))) == 1
        return torch.stack([taken[own[place]] for place in (starts if alike else range(len(own)))])


def _tensor(array: NDArray[Any], dtype: DTypeLike) -> Tensor:
    """On the memory of the array, where it is of the type: other packs may share it, and nothing here writes to it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(np.ascontiguousarray(array, dtype))
