"""Model families on stacked parameters: one row of a matrix holds all the parameters of one trial.

Activations are `[trial, unit, row]`, rows last: products over long contiguous rows are what makes a pack fast.
Only tensor methods are used, so that naming a family does not import torch.
"""

from __future__ import annotations

import itertools
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
        return itertools.pairwise(sizes)

    def parameter_count(self, inputs: int, outputs: int) -> int:
        return sum(self._sizes(inputs, outputs))

    def initial(self, uniform: Tensor, inputs: int, outputs: int) -> Tensor:
        """Parameters [trial, parameter] from numbers in [0, 1): each within ± 1 / sqrt(fan in)."""
        scaled = 2 * uniform - 1
        layers = zip(
            scaled.split_with_sizes(self._sizes(inputs, outputs), dim=1), self.layers(inputs, outputs), strict=True
        )
        for piece, (fan_in, _) in layers:
            piece.div_(math.sqrt(fan_in))
        return scaled

    def columns(self, x: Tensor) -> Tensor:
        """x [seed, feature, row] as `forward` takes it: with a last feature of ones where there is a bias."""
        if not self.bias:
            return x
        padded = x.new_ones(x.shape[0], x.shape[1] + 1, x.shape[2])
        padded[:, :-1] = x
        return padded

    def forward(self, parameters: Tensor, columns: Tensor, outputs: int) -> Tensor:
        """Outputs [trial, output, row] of parameters [trial, parameter] on columns [seed, feature, row].

        Trials come seed by seed, equally many for each, so the first layer is one product per seed. Its biases
        are the weights of the column of ones; those of the later layers follow after the layer's weights.
        """
        trials, (seeds, width, rows) = len(parameters), columns.shape
        pieces = parameters.split_with_sizes(self._sizes(width - self.bias, outputs), dim=1)
        product = pieces[0].reshape(seeds, -1, width).bmm(columns)  # [seed, trial of it x unit, row]
        if not self.hidden:
            return product.view(trials, outputs, rows)
        # relu_ before the view: in place on a view, autograd would copy
        activation = product.relu_().view(trials, -1, rows)
        for piece, (fan_in, units) in zip(pieces[1:], list(self.layers(width, outputs))[1:], strict=True):
            weights = piece[:, : fan_in * units].view(trials, units, fan_in)
            activation = piece[:, fan_in * units :].unsqueeze(2).baddbmm(weights, activation)
            if piece is not pieces[-1]:
                activation = activation.relu_()
        return activation

    def _sizes(self, inputs: int, outputs: int) -> list[int]:
        return [units * (fan_in + self.bias) for fan_in, units in self.layers(inputs, outputs)]


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
