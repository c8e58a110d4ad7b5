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
from typing import TYPE_CHECKING, ClassVar, Literal

from oodbench.engine.products import BY, multiply_and_add, multiply_by_seed
from oodbench.engine.tensor import Tensor
from oodbench.errors import TrainingFailed
from oodbench.settings.fields import setting

if TYPE_CHECKING:
    from oodbench.engine.chance import Chance

WIDE = 32  # units of a lone hidden layer, from which its gradient has a form of its own


@dataclass(frozen=True)
class Model(ABC):
    """A model family: a dataclass of settings with one forward pass, for training and evaluation alike."""

    name: ClassVar[str]

    @property
    def learns_representation(self) -> bool:
        """Whether what `represent` returns depends on the parameters."""
        return True

    @property
    def is_plain(self) -> bool:
        """Whether it is layers with relu between them and nothing else, which numpy alone can evaluate."""
        return False

    @abstractmethod
    def units(self, outputs: int) -> tuple[int, ...]:
        """How many numbers every layer computes per row, the outputs last: what a pack needs memory for."""

    @abstractmethod
    def parameter_count(self, inputs: int, outputs: int) -> int: ...

    @abstractmethod
    def initial(self, uniform: Tensor, inputs: int, outputs: int) -> Tensor:
        """First parameters [trial, parameter] from as many numbers in [0, 1)."""

    def columns(self, x: Tensor) -> Tensor:
        """x [seed, feature, row] as `represent` takes it."""
        return x

    def pieces(self, parameters: Tensor, inputs: int, outputs: int) -> tuple[Tensor, ...]:
        """The parameters [trial, parameter] as `represent` and `read_out` take them."""
        return (parameters,)

    @abstractmethod
    def represent(self, pieces: Sequence[Tensor], columns: Tensor, chance: Chance | None = None) -> Tensor:
        """What the last layer sees: [trial, unit, row]. `chance` is there in training only."""

    @abstractmethod
    def read_out(self, pieces: Sequence[Tensor], representation: Tensor, outputs: int) -> Tensor:
        """Outputs [trial, output, row] of the last layer."""

    def forward(
        self, pieces: Sequence[Tensor], columns: Tensor, outputs: int, chance: Chance | None = None
    ) -> tuple[Tensor, Tensor]:
        """What `read_out` and `represent` return, for a gradient step."""
        represented = self.represent(pieces, columns, chance)
        return self.read_out(pieces, represented, outputs), represented

    def finish(self, parameters: Tensor, inputs: int, outputs: int) -> tuple[Model, Tensor]:
        """The model that a training ends with, and its parameters: itself, unless some were for training only."""
        return self, parameters


@dataclass(frozen=True)
class Layered(Model):
    """Layers from inputs to outputs; the first multiplies the columns, so gates can stand before it."""

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

    @property
    def learns_representation(self) -> bool:
        return bool(self.hidden)

    def units(self, outputs: int) -> tuple[int, ...]:
        return (*self.hidden, outputs)

    def activate(self, activation: Tensor) -> Tensor:
        """What stands between two layers; may be in place."""
        from oodbench.engine.derivatives import relu_

        return relu_(activation)

    def after_layer(self, activation: Tensor, before: Tensor | None, chance: Chance | None) -> Tensor:
        """What is done to a hidden layer's units [trial, unit, row]; `before` is what the layer saw."""
        return activation

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
        padded = x.new_empty(x.shape[0], x.shape[1] + 1, x.shape[2])
        padded[:, :-1] = x
        padded[:, -1] = 1
        return padded

    def pieces(self, parameters: Tensor, inputs: int, outputs: int) -> tuple[Tensor, ...]:
        """The parameters [trial, parameter] layer by layer.

        A unit of the first layer has its bias behind its weights, as the weight of the column of ones; a later
        layer has all of its biases behind all of its weights.
        """
        return tuple(parameters.split_with_sizes(self._sizes(inputs, outputs), dim=1))

    def represent(self, pieces: Sequence[Tensor], columns: Tensor, chance: Chance | None = None) -> Tensor:
        """What the last layer sees: [trial, unit, row], or the columns themselves where there is no other layer.

        Trials come seed by seed, equally many for each, so the first layer is one product per seed.
        """
        if not self.hidden:
            return columns
        # activated before the view: in place on a view, autograd would copy
        activation = self.activate(multiply_by_seed(pieces[0], columns))
        activation = activation.view(len(pieces[0]), -1, columns.shape[2])
        activation = self.after_layer(activation, None, chance)
        for piece in pieces[1:-1]:
            activation = self.after_layer(self.activate(_layer(piece, activation)), activation, chance)
        return activation

    def read_out(self, pieces: Sequence[Tensor], representation: Tensor, outputs: int) -> Tensor:
        """Outputs [trial, output, row] of the last layer."""
        if self.hidden:
            return _layer(pieces[-1], representation)
        product = multiply_by_seed(pieces[0], representation)
        return product.view(len(pieces[0]), -1, representation.shape[2])

    def _sizes(self, inputs: int, outputs: int) -> list[int]:
        return [units * (fan_in + self.bias) for fan_in, units in self.layers(inputs, outputs)]


def _layer(piece: Tensor, activation: Tensor) -> Tensor:
    """A later layer: its weights, then its biases."""
    trials, fan_in, _ = activation.shape
    units = piece.shape[1] // (fan_in + 1)
    weights = piece[:, : fan_in * units].view(trials, units, fan_in)
    return multiply_and_add(weights, activation, piece[:, fan_in * units :].unsqueeze(2))


@dataclass(frozen=True)
class Linear(Layered):
    """A linear model.

    Examples:
        >>> model = Linear(intercept=False)
    """

    name = "linear"
    intercept: bool = setting(True, "whether the model has a constant term")

    @property
    def is_plain(self) -> bool:
        return type(self) is Linear

    @property
    def hidden(self) -> tuple[int, ...]:
        return ()

    @property
    def bias(self) -> bool:
        return self.intercept


@dataclass(frozen=True)
class Mlp(Layered):
    """A multi-layer perceptron.

    Examples:
        >>> model = Mlp(width=(64, 64), activation="gelu", dropout=0.1, norm=True, residual=True)
    """

    name = "mlp"
    width: tuple[int, ...] = setting((64,), "units of each hidden layer, e.g. 64 or 20,10")
    init: float = setting(0.0, "std of normal initial weights, with biases 0; 0: uniform within 1 / sqrt(fan in)")

    activation: Literal["relu", "gelu", "silu", "tanh"] = setting("relu", "what stands between two layers")
    dropout: float = setting(0.0, "share of hidden units that a gradient step leaves out")
    norm: bool = setting(False, "whether the units of a hidden layer are scaled to mean 0 and variance 1 in every row")
    residual: bool = setting(False, "whether a hidden layer as wide as the one before it is added to it")
    embed: int = setting(0, "width of the learned vector of each level of a categorical column; 0: none")

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise ValueError("dropout must be 0 or more and below 1.")
        if not self.width or min(self.width) < 1:
            raise ValueError("width must be one or more whole numbers from 1.")
        if self.init < 0 or self.embed < 0:
            raise ValueError("init and embed must be 0 or more.")

    @property
    def is_plain(self) -> bool:
        return type(self) is Mlp and self.activation == "relu" and not (self.norm or self.residual)

    def forward(
        self, pieces: Sequence[Tensor], columns: Tensor, outputs: int, chance: Chance | None = None
    ) -> tuple[Tensor, Tensor]:
        units, drops = self.width[0], self.dropout and chance is not None
        wide = units >= WIDE and units % BY == 0 and columns.shape[1] <= units
        if not (wide and len(self.width) == outputs == 1 and self.is_plain) or drops or columns.requires_grad:
            return super().forward(pieces, columns, outputs, chance)
        from oodbench.engine.hidden_layer import output_behind_relu

        first, (weights, bias) = pieces[0], pieces[1].unsqueeze(1).split_with_sizes([units, 1], dim=2)
        return output_behind_relu(first.view(len(weights), units, -1), weights, bias, columns)

    def activate(self, activation: Tensor) -> Tensor:
        if self.activation == "relu":
            return super().activate(activation)
        from torch.nn import functional

        activated: Tensor = getattr(functional, self.activation)(activation)
        return activated

    def after_layer(self, activation: Tensor, before: Tensor | None, chance: Chance | None) -> Tensor:
        if self.norm:
            mean, variance = activation.mean(1, keepdim=True), activation.var(1, correction=0, keepdim=True)
            activation = (activation - mean) / (variance + 1e-5).sqrt()
        if self.residual and before is not None and before.shape == activation.shape:
            activation = activation + before
        if self.dropout and chance is not None:
            kept = chance.uniform(*activation.shape[1:]) >= self.dropout
            activation = activation * kept / (1 - self.dropout)
        return activation

    def parameter_count(self, inputs: int, outputs: int) -> int:
        if self.embed:
            raise TrainingFailed("embed is for the model of a study: inputs of other networks have no categories.")
        return super().parameter_count(inputs, outputs)

    @property
    def init_std(self) -> float:
        return self.init

    @property
    def hidden(self) -> tuple[int, ...]:
        return self.width

    @property
    def bias(self) -> bool:
        return True
