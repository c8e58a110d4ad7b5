"""Model families on stacked parameters: one row of a matrix holds all the parameters of one trial.

Activations are `[trial, unit, row]`, rows last: products over long contiguous rows are what makes a pack fast.
Only tensor methods are used, so that naming a family does not import torch.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from oodbench.settings.fields import setting

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

    @property
    def init_std(self) -> float:
        """Of normal first weights, beside zero biases; 0 for uniform ones."""
        return 0.0

    def layers(self, inputs: int, outputs: int) -> Iterator[tuple[int, int]]:
        """(inputs, units) of every layer."""
        sizes = [inputs, *self.hidden, outputs]
        return itertools.pairwise(sizes)

    def parameter_count(self, inputs: int, outputs: int) -> int:
        return sum(self._sizes(inputs, outputs))

    def initial(self, uniform: Tensor, inputs: int, outputs: int) -> Tensor:
        """Parameters [trial, parameter] from numbers in [0, 1): uniform within ± 1 / sqrt(fan in), or normal."""
        scaled = 2 * uniform - 1
        if self.init_std:
            scaled = self.init_std * math.sqrt(2) * (scaled * (1 - 1e-7)).erfinv()
        for depth, (piece, (fan_in, units)) in enumerate(
            zip(self.pieces(scaled, inputs, outputs), self.layers(inputs, outputs), strict=True)
        ):
            if not self.init_std:
                piece.div_(math.sqrt(fan_in))
            elif self.bias:
                biases = piece.view(len(piece), units, -1)[:, :, -1] if depth == 0 else piece[:, fan_in * units :]
                biases.zero_()
        return scaled

    def columns(self, x: Tensor) -> Tensor:
        """x [seed, feature, row] as the first layer takes it: with a last feature of ones where there is a bias."""
        if not self.bias:
            return x
        padded = x.new_ones(x.shape[0], x.shape[1] + 1, x.shape[2])
        padded[:, :-1] = x
        return padded

    def pieces(self, parameters: Tensor, inputs: int, outputs: int) -> tuple[Tensor, ...]:
        """The parameters [trial, parameter] layer by layer.

        A unit of the first layer has its bias behind its weights, as the weight of the column of ones; a later
        layer has all of its biases behind all of its weights.
        """
        return tuple(parameters.split_with_sizes(self._sizes(inputs, outputs), dim=1))

    def represent(self, pieces: Sequence[Tensor], columns: Tensor) -> Tensor:
        """What the last layer sees: [trial, unit, row], or the columns themselves where there is no other layer.

        Trials come seed by seed, equally many for each, so the first layer is one product per seed.
        """
        if not self.hidden:
            return columns
        seeds, width, rows = columns.shape
        trials = len(pieces[0])
        # relu_ before the view: in place on a view, autograd would copy
        activation = pieces[0].reshape(seeds, -1, width).bmm(columns).relu_().view(trials, -1, rows)
        for piece in pieces[1:-1]:
            activation = _layer(piece, activation).relu_()
        return activation

    def read_out(self, pieces: Sequence[Tensor], representation: Tensor) -> Tensor:
        """Outputs [trial, output, row] of the last layer."""
        if self.hidden:
            return _layer(pieces[-1], representation)
        seeds, width, rows = representation.shape
        product = pieces[0].reshape(seeds, -1, width).bmm(representation)
        return product.view(len(pieces[0]), -1, rows)

    def _sizes(self, inputs: int, outputs: int) -> list[int]:
        return [units * (fan_in + self.bias) for fan_in, units in self.layers(inputs, outputs)]


def _layer(piece: Tensor, activation: Tensor) -> Tensor:
    """A later layer: its weights, then its biases."""
    trials, fan_in, _ = activation.shape
    units = piece.shape[1] // (fan_in + 1)
    weights = piece[:, : fan_in * units].view(trials, units, fan_in)
    return piece[:, fan_in * units :].unsqueeze(2).baddbmm(weights, activation)


@dataclass(frozen=True)
class Linear(Model):
    """A linear model.

    Examples:
        >>> model = Linear(intercept=False)
    """

    name = "linear"
    intercept: bool = setting(True, "whether the model has a constant term")

    @property
    def hidden(self) -> tuple[int, ...]:
        return ()

    @property
    def bias(self) -> bool:
        return self.intercept


@dataclass(frozen=True)
class Mlp(Model):
    """A multi-layer perceptron with relu units.

    Examples:
        >>> model = Mlp(width=(20, 10))
    """

    name = "mlp"
    width: tuple[int, ...] = setting((64,), "units of each hidden layer, e.g. 64 or 20,10")
    init: float = setting(0.0, "std of normal initial weights, with biases 0; 0: uniform within 1 / sqrt(fan in)")

    def __post_init__(self) -> None:
        if not self.width or min(self.width) < 1:
            raise ValueError("width must be one or more whole numbers from 1.")
        if self.init < 0:
            raise ValueError("init must be 0 or more.")

    @property
    def init_std(self) -> float:
        return self.init

    @property
    def hidden(self) -> tuple[int, ...]:
        return self.width

    @property
    def bias(self) -> bool:
        return True


FAMILIES: dict[str, type[Model]] = {family.name: family for family in (Linear, Mlp)}
