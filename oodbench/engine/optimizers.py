"""Optimizers on stacked parameters: the first dimension is the trial, each with a learning rate of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol

from oodbench.engine.tensor import Tensor


class Optimizer(Protocol):
    moments: ClassVar[tuple[str, ...]]  # what it keeps from step to step, each [trial, ...]
    parameters: Tensor

    def step(self, gradient: Tensor) -> None: ...

    def go_on(self, moments: Mapping[str, Tensor], steps: int) -> None: ...


class Adam:
    """Adam (Kingma & Ba 2015)."""

    moments: ClassVar[tuple[str, ...]] = ("mean", "square")

    def __init__(self, parameters: Tensor, learning_rate: Tensor, weight_decay: Tensor) -> None:
        self.parameters = parameters.detach()
        self.learning_rate, self.weight_decay = (_as_wide(rate, parameters) for rate in (learning_rate, weight_decay))
        self.mean, self.square = self.parameters * 0, self.parameters * 0
        self.steps = 0

    def step(self, gradient: Tensor) -> None:
        self.steps += 1
        gradient = gradient.addcmul(self.parameters, self.weight_decay)
        self.mean.lerp_(gradient, 0.1)
        self.square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        scale = (self.square / (1 - 0.999**self.steps)).sqrt_().add_(1e-8)
        self.parameters.addcdiv_(self.mean * (self.learning_rate / (0.9**self.steps - 1)), scale)

    def go_on(self, moments: Mapping[str, Tensor], steps: int) -> None:
        self.mean.copy_(moments["mean"])
        self.square.copy_(moments["square"])
        self.steps = steps


class Sgd:
    """Gradient descent with momentum 0.9."""

    moments: ClassVar[tuple[str, ...]] = ("velocity",)
    momentum = 0.9

    def __init__(self, parameters: Tensor, learning_rate: Tensor, weight_decay: Tensor) -> None:
        self.parameters = parameters.detach()
        self.learning_rate, self.weight_decay = (_as_wide(rate, parameters) for rate in (learning_rate, weight_decay))
        self.velocity = self.parameters * 0

    def step(self, gradient: Tensor) -> None:
        self.velocity.mul_(self.momentum).add_(gradient).addcmul_(self.parameters, self.weight_decay)
        self.parameters.addcmul_(self.velocity, -self.learning_rate)

    def go_on(self, moments: Mapping[str, Tensor], steps: int) -> None:
        self.velocity.copy_(moments["velocity"])


class Gd(Sgd):
    """Gradient descent without momentum."""

    momentum = 0.0


class Plain:
    """The direction itself is the step: for methods that make steps of their own."""

    moments: ClassVar[tuple[str, ...]] = ()

    def __init__(self, parameters: Tensor, learning_rate: Tensor, weight_decay: Tensor) -> None:
        self.parameters = parameters.detach()
        self.shrink = _as_wide(learning_rate * weight_decay, parameters)

    def step(self, gradient: Tensor) -> None:
        self.parameters.sub_(gradient).addcmul_(self.parameters, self.shrink, value=-1)

    def go_on(self, moments: Mapping[str, Tensor], steps: int) -> None:
        """Nothing is kept."""


OPTIMIZERS: dict[str, Callable[[Tensor, Tensor, Tensor], Optimizer]] = {
    "adam": Adam,
    "sgd": Sgd,
    "gd": Gd,
    "plain": Plain,
}


def _as_wide(rate: Tensor, parameters: Tensor) -> Tensor:
    """[trial] -> [trial, 1, ...]"""
    return rate.view(-1, *[1] * (parameters.dim() - 1))
