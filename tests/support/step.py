"""One gradient step of a method in double precision, to be held against formulas in numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oodbench import Hparams, Linear, LossMethod, Recipe, Rows, Setup, Trainer, TrainingRows, Trial
from oodbench.engine.models import Model
from oodbench.engine.state import State
from oodbench.engine.trainer import Training


@dataclass(frozen=True, eq=False)
class Step:
    """`rows` and `hp` as the method sees them; `parameters` [trial, parameter] can be differentiated."""

    method: LossMethod
    rows: Rows
    hp: Hparams

    def loss(self) -> Tensor:
        return self.method.loss(self.rows, self.hp)

    def direction(self) -> Tensor:
        return self.method.direction(self.rows, self.hp)

    def at(self, parameters: Tensor) -> Step:
        return replace(self, rows=self.rows.at(parameters))


def step_of(
    method: LossMethod,
    train: TrainingRows,
    *hparams: Mapping[str, Any],
    model: Model | None = None,
    recipe: Recipe | None = None,
    step: int = 0,
    parameters: Any = None,
    explored: Any = None,
    entropy: int = 1,
) -> Step:
    """The rows of a step of as many trials as there are hyper-parameters; what is not given has its default."""
    setup = Setup(model or Linear(intercept=False), recipe or Recipe())
    defaults = {name: dimension.default for name, dimension in method.search_space().items()}
    trials: Sequence[Trial] = [
        Trial(number, {**defaults, **values}, 0, entropy + number) for number, values in enumerate(hparams or [{}])
    ]
    training = Training(method, {0: train}, trials, Trainer(setup))
    if parameters is None:
        parameters = training.parameters.detach()
    training.parameters = (
        torch.as_tensor(np.asarray(parameters)).double().expand(len(trials), -1).clone().requires_grad_()
    )
    if explored is not None:
        training.explored = torch.as_tensor(np.asarray(explored)).double()
    hp = Hparams({name: _as_double(value) for name, value in vars(training.hp).items()})
    rows = training.program.forward(training.parameters, _double(training.data.batch(step, training.explored)), step)
    training.program.state = State(type(method).__name__, method.start(rows, hp), len(trials))
    return Step(method, rows, hp)


def _double(batch: Any) -> Any:
    return replace(batch, **{name: _as_double(value) for name, value in vars(batch).items()})


def _as_double(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
