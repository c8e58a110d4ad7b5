"""What a program sends to a GPU, what it fetches from there, and where it waits.

A GPU works off a queue. A program that only adds to the queue stays ahead of it; one that asks for a value, or for a
size that depends on values, waits until the queue is empty. Copies to the GPU wait too, unless they are `non_blocking`.
The count is of the program's own calls, as torch does them; it does not see into one, such as a backward pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

MAKES = {"tensor", "as_tensor", "asarray", "new_tensor"}  # of numbers that the CPU has
VALUES = {
    *("item", "tolist", "equal", "allclose", "is_nonzero", "__bool__", "__int__", "__float__", "__complex__"),
    *("__index__", "__contains__", "__repr__", "__format__"),
}
SIZES = {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount", "histc", "multinomial"}
CHECKED = {  # whether they failed is looked up; those that end in _ex do not look
    *("cholesky", "inv", "inverse", "solve", "lstsq", "eigh", "eigvalsh", "eig", "eigvals", "svd", "svdvals", "pinv"),
    *("matrix_rank", "lu_factor", "ldl_factor"),
}


@dataclass
class Traffic:
    """Counts by the name of the function."""

    to_gpu: Counter[str] = field(default_factory=Counter)
    to_cpu: Counter[str] = field(default_factory=Counter)
    waits: Counter[str] = field(default_factory=Counter)

    def since(self, before: Traffic) -> Traffic:
        """What came after a copy was made."""
        return Traffic(self.to_gpu - before.to_gpu, self.to_cpu - before.to_cpu, self.waits - before.waits)

    def copy(self) -> Traffic:
        return self.since(Traffic())

    def count(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], on_gpu: list[Tensor], asked: str | None
    ) -> None:
        """A call of the function, with those of its tensors that are on the GPU and the kind of device it names."""
        here = {id(tensor) for tensor in on_gpu}
        made = name in MAKES and (asked == "cuda" or (asked is None and bool(on_gpu)))
        if made or (asked == "cuda" and name in ("to", "cuda") and not on_gpu):
            self._send(name, non_blocking=bool(kwargs.get("non_blocking")))
        elif not on_gpu:
            return
        elif asked == "cpu" or name in VALUES:
            self.to_cpu[name] += 1
            self.waits[name] += 1
        elif name in ("__getitem__", "__setitem__"):
            self._index(name, args, here)
        elif name == "where" and len(args) == 3 and any(_is_sent(value, here) for value in args):
            self._send(name)
        elif _has_unknown_size(name, args, kwargs) or name.removeprefix("linalg_") in CHECKED:
            self.waits[name] += 1

    def _send(self, name: str, non_blocking: bool = False) -> None:
        self.to_gpu[name] += 1
        self.waits[name] += not non_blocking

    def _index(self, name: str, args: tuple[Any, ...], here: set[int]) -> None:
        places = list(_parts(args[1]))
        tensors = [place for place in places if isinstance(place, Tensor)]
        if any(_is_mask_or_number(place) for place in tensors if id(place) in here):
            self.waits[name] += 1
        listed = any(isinstance(place, list | range | np.ndarray) for place in places)
        written = args[2:] if tensors or listed else tuple(value for value in args[2:] if isinstance(value, Tensor))
        if listed or any(_is_sent(value, here) for value in (*tensors, *written)):
            self._send(name)


def _parts(index: Any) -> Iterator[Any]:
    yield from index if isinstance(index, tuple) else (index,)


def _is_sent(value: Any, here: set[int]) -> bool:
    """Whether it is a number or a tensor that is not on the GPU yet."""
    return id(value) not in here if isinstance(value, Tensor) else isinstance(value, int | float)


def _is_mask_or_number(place: Tensor) -> bool:
    return bool(place.dtype == torch.bool or place.dim() == 0)


def _has_unknown_size(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether the size of the result depends on values."""
    if name == "repeat_interleave":
        return isinstance(kwargs.get("repeats", args[:2][-1]), Tensor) and "output_size" not in kwargs
    if name == "one_hot":
        return int(kwargs.get("num_classes", args[1] if len(args) > 1 else -1)) < 0
    return name in SIZES or (name == "where" and len(args) == 1)
