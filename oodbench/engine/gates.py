"""Stochastic gates (Yamada et al. 2020): each feature is let through as far as its gate is open.

A gate scales its feature's column of the first layer, so a trained model is an ordinary one with these scales
folded in. Gates are parameters behind those of the model; a method that has none pays nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oodbench.engine.models import Layered, Model

if TYPE_CHECKING:
    from torch import Generator, Tensor


BLOCK = 100  # steps whose noise is drawn at once


def open_share(centers: Tensor) -> Tensor:
    """How far gates are open, from 0 to 1, for centers that start at 0: halfway."""
    return (centers + 0.5).clamp(0, 1)


class Gates:
    """The gates of a pack's trials; with `noise` 0 there are none."""

    def __init__(self, noise: float, generators: Sequence[Generator], features: int) -> None:
        self.noise, self.generators, self.features = noise, generators, features
        self.block = -1

    def append(self, parameters: Tensor) -> Tensor:
        """The model's parameters [trial, parameter] with those of the gates behind them."""
        from torch import cat

        return cat([parameters, parameters.new_zeros(len(parameters), self.features)], 1) if self.noise else parameters

    def split(self, parameters: Tensor) -> tuple[Tensor, Tensor | None]:
        """The model's parameters, and the centers of the gates [trial, feature]."""
        if not self.noise:
            return parameters, None
        return parameters[:, : -self.features], parameters[:, -self.features :]

    def close(self, first_layer: Tensor, centers: Tensor | None, step: int) -> Tensor:
        """The first layer [trial, unit, feature (+ 1 for a bias)] behind the gates as they stand in this step."""
        if centers is None:
            return first_layer
        return first_layer * _for_layer(open_share(centers + self._noise(step, centers)), first_layer)

    def fold(self, parameters: Tensor, model: Model, outputs: int) -> tuple[Model, Tensor]:
        """The model that the training ends with, and its parameters: the gates, without noise, in its first layer."""
        weights, centers = self.split(parameters)
        model, weights = model.finish(weights, self.features, outputs)
        if centers is None:
            return model, weights
        assert isinstance(model, Layered)
        folded = weights.clone()
        first_layer = model.pieces(folded, self.features, outputs)[0].view(len(folded), -1, self.features + model.bias)
        first_layer *= _for_layer(open_share(centers), first_layer)
        return model, folded

    def _noise(self, step: int, like: Tensor) -> Tensor:
        import torch

        from oodbench.engine.device import send

        if step // BLOCK != self.block:
            self.block = step // BLOCK
            draws = [torch.randn(BLOCK, self.features, generator=generator) for generator in self.generators]
            self.drawn = self.noise * send(torch.stack(draws, 1), like.device)  # [step, trial, feature]
        return self.drawn[step % BLOCK]


def _for_layer(gates: Tensor, first_layer: Tensor) -> Tensor:
    """Gates [trial, feature] as factors of a first layer, whose bias has none."""
    factors = gates.new_ones(len(gates), 1, first_layer.shape[2])
    factors[:, 0, : gates.shape[1]] = gates
    return factors
