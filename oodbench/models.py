"""Model families on stacked parameters: one row of a matrix holds all the parameters of one trial.

Activations are `[trial, unit, row]`, rows last: products over long contiguous rows are what makes a pack fast.
Only tensor methods are used, so that naming a family does not import torch.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from oodbench.settings import setting

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Model(ABC):
    """Layers from inputs to outputs with relu between them."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def hidden(self) -> tuple[int, ...]: ...

    @property
    @abstractmethod
    def bias(self) -> bool: ...

    def layers(self, inputs: int, outputs: int) -> Iterator[tuple[int, int]]:
        """(inputs, units) of every layer."""
        sizes = [inputs, *self.hidden, outputs]
        return zip(sizes, sizes[1:], strict=False)

    def parameter_count(self, inputs: int, outputs: int) -> int:
        return sum(units * (fan_in + self.bias) for fan_in, units in self.layers(inputs, outputs))

    def initial(self, uniform: Tensor, inputs: int, outputs: int) -> Tensor:
        """Parameters [trial, parameter] from numbers in [0, 1): each within ± 1 / sqrt(fan in)."""
        pieces = uniform.split(
            [units * (fan_in + self.bias) for fan_in, units in self.layers(inputs, outputs)], dim=1
        )
        bounds = [1 / math.sqrt(fan_in) for fan_in, _ in self.layers(inputs, outputs)]
        scaled = uniform.clone()
        start = 0
        for piece, bound in zip(pieces, bounds, strict=True):
            scaled[:, start : start + piece.shape[1]] = (2 * piece - 1) * bound
            start += piece.shape[1]
        return scaled

    def forward(self, parameters: Tensor, x: Tensor, outputs: int) -> Tensor:
        """Outputs [trial, output, row] of parameters [trial, parameter] on x [seed, feature, row].

        Trials come seed by seed, equally many for each, so the first layer is one product per seed.
        """
        trials, seeds, rows = len(parameters), x.shape[0], x.shape[2]
        shapes = list(self.layers(x.shape[1], outputs))
        sizes = [size for fan_in, units in shapes for size in ([fan_in * units, units] if self.bias else [fan_in * units])]
        pieces = iter(parameters.split(sizes, dim=1))
        activation = x
        for depth, (fan_in, units) in enumerate(shapes):
            stacks = seeds if depth == 0 else trials
            weight = next(pieces).reshape(stacks, -1, fan_in)
            activation = weight.bmm(activation).view(trials, units, rows)
            if self.bias:
                activation = activation + next(pieces).unsqueeze(2)
            if depth < len(shapes) - 1:
                activation = activation.relu()
        return activation


@dataclass(frozen=True)
class Linear(Model):
    """A linear model."""

    name = "linear"
    intercept: bool = setting(True, "whether there is a constant term")

    @property
    def hidden(self) -> tuple[int, ...]:
        return ()

    @property
    def bias(self) -> bool:
        return self.intercept


@dataclass(frozen=True)
class Mlp(Model):
    """A multi-layer perceptron with relu units."""

    name = "mlp"
    width: tuple[int, ...] = setting((64,), "units of each hidden layer, e.g. 64 or 20,10")

    def __post_init__(self) -> None:
        if not self.width or min(self.width) < 1:
            raise ValueError("width must be one or more whole numbers from 1.")

    @property
    def hidden(self) -> tuple[int, ...]:
        return self.width

    @property
    def bias(self) -> bool:
        return True


FAMILIES: dict[str, type[Model]] = {family.name: family for family in (Linear, Mlp)}
