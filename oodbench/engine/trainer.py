"""The training loop: the trials of a pack as one batched tensor program, with a count of what it took.

The parameters of all trials are one matrix [trial, parameter]; a step is one forward pass, one backward pass and
one update for all of them. Trials touch each other nowhere, so each ends as it would have ended alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodbench.engine.data import TrainingRows
from oodbench.engine.fitted import FittedModel
from oodbench.engine.gates import Gates, open_share
from oodbench.engine.optimizers import OPTIMIZERS, Adam, Sgd
from oodbench.engine.rows import Hparams, Rows, per_trial
from oodbench.engine.trial import Setup, Trial
from oodbench.errors import TrainingFailed
from oodbench.settings.space import Space

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


class Objective(Protocol):
    """What the loop asks of a method."""

    gate_noise: ClassVar[float]

    def search_space(self) -> Space: ...

    def loss(self, rows: Rows, hp: Hparams) -> Tensor: ...

    def explores_at(self, step: int, hp: Hparams) -> bool: ...

    def explore(self, rows: Rows, hp: Hparams) -> Tensor: ...


class Trainer:
    """Trains loss methods in the setup of a study, and counts: the ledger has what it counted.

    Examples:
        >>> references = trainer.fit(ERM(), train, trials)
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.gradient_steps = 0  # of all trials together
        self.row_visits = 0  # rows that these steps saw, of all trials together

    def fit(self, method: Objective, train: Mapping[int, TrainingRows], trials: Sequence[Trial]) -> list[FittedModel]:
        """Fitted models of the trials, in their order. `train` has the rows of every seed."""
        order = sorted(range(len(trials)), key=lambda position: trials[position].seed)
        stacked = [trials[position] for position in order]
        data = _StackedRows(train, stacked, self.setup)
        model, outputs, recipe = self.setup.model, data.outputs, self.setup.recipe

        parameters = model.initial(data.uniform(model.parameter_count(data.features, outputs)), data.features, outputs)
        gates = Gates(method.gate_noise, data.generators, data.features)
        parameters = gates.append(parameters).to(data.device).requires_grad_()
        hp = _stack_hparams(method, stacked, data.device)
        optimizer = self.optimizer(recipe.optimizer, parameters, hp.learning_rate, hp.weight_decay, rows=data.size)
        explored: Tensor | None = None
        for step in range(recipe.steps):
            if method.explores_at(step, hp):
                everyone = replace(data.whole, explored=explored, random=data.uniform(data.rows).to(data.device))
                explored = method.explore(_forward(self.setup, parameters.detach(), everyone, step, gates), hp)
            rows = _forward(self.setup, parameters, data.batch(step, explored), step, gates)
            objective = method.loss(rows, hp)  # [trial]
            _check_objective(method, objective, len(trials))
            (gradient,) = torch.autograd.grad(objective.sum(), parameters)
            optimizer.step(gradient)

        finished = gates.fold(parameters.detach(), model, outputs).cpu().numpy()
        fitted: dict[int, FittedModel] = {}
        for row, position in enumerate(order):
            fitted[position] = FittedModel(model, recipe, outputs, data.classification, finished[row].copy())
        return [fitted[position] for position in range(len(trials))]

    def optimizer(
        self, name: str, parameters: Tensor, learning_rate: Tensor, weight_decay: Tensor, rows: int = 0
    ) -> CountedOptimizer:
        """An optimizer of parameters [trial, ...] whose steps are counted: one of every trial, on so many rows."""
        return CountedOptimizer(self, OPTIMIZERS[name](parameters, learning_rate, weight_decay), len(parameters), rows)


@dataclass(frozen=True, eq=False)
class CountedOptimizer:
    trainer: Trainer
    optimizer: Adam | Sgd
    trials: int
    rows: int

    def step(self, gradient: Tensor) -> None:
        self.optimizer.step(gradient)
        self.trainer.gradient_steps += self.trials
        self.trainer.row_visits += self.trials * self.rows


def _check_objective(method: Objective, objective: Any, trials: int) -> None:
    name = type(method).__name__
    if not isinstance(objective, Tensor) or not objective.requires_grad:
        raise TrainingFailed(f"{name}.loss does not depend on the model: use rows.losses or outputs")
    if objective.shape != (trials,):
        raise TrainingFailed(
            f"{name}.loss must return one number per trial, shape ({trials},), "
            f"not {tuple(objective.shape)}; reduce over the last dimension with mean(-1) or rows.risk"
        )


def _forward(setup: Setup, parameters: Tensor, batch: _Batch, step: int, gates: Gates) -> Rows:
    """The rows of a step as the method's loss sees them."""
    model, recipe = setup.model, setup.recipe
    weights, centers = gates.split(parameters)
    pieces = model.pieces(weights, batch.columns.shape[1] - model.bias, batch.outputs)
    first_layer = pieces[0].view(len(parameters), -1, batch.columns.shape[1])
    pieces = (gates.close(first_layer, centers, step), *pieces[1:])
    represented = model.represent(pieces, batch.columns)
    outputs = model.read_out(pieces, represented)
    return Rows(
        losses=recipe.row_losses(outputs, batch.y),
        outputs=outputs,
        y=batch.y,
        step=step,
        recipe=recipe,
        explored=batch.explored,
        environments_or_none=batch.environments,
        gates=None if centers is None else open_share(centers),
        columns=batch.columns,
        random=batch.random,
        represented=represented,
        parameters=parameters,
        first_layer=first_layer,
    )


def keep_freed_memory() -> None:
    """Tell glibc to keep the memory of freed tensors: taking it anew each step costs more than the arithmetic."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        libc.mallopt(_M_TRIM_THRESHOLD, 1 << 30)


@dataclass(frozen=True, eq=False)
class _Batch:
    """Rows of a step on the device."""

    columns: Tensor  # [seed or trial, feature, row]
    y: Tensor  # [trial, row]
    outputs: int
    environments: Tensor | None  # [trial, environment, row]
    explored: Tensor | None = None  # [trial, row] or [trial, k, row]
    random: Tensor | None = None  # [trial, row]


class _StackedRows:
    """Training rows of the pack's seeds on the device, and the batches each trial draws from them."""

    def __init__(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], setup: Setup) -> None:
        seeds = list(dict.fromkeys(trial.seed for trial in trials))
        counts = {sum(trial.seed == seed for trial in trials) for seed in seeds}
        if len(counts) > 1:  # not a block of configurations x seeds: every trial brings its own rows
            seeds = [trial.seed for trial in trials]
        parts = [train[seed] for seed in seeds]
        first = parts[0]
        self.device = torch.device(setup.device)
        self.classification = first.task == "classification"
        self.outputs = setup.recipe.outputs(self.classification, first.classes)
        self.rows, self.features = first.x.shape
        self.generators = [torch.Generator().manual_seed(trial.entropy) for trial in trials]
        self.size = setup.recipe.batch_rows(self.rows)
        repeats = len(trials) // len(seeds)

        x = torch.stack([torch.from_numpy(part.x.T.astype(np.float32, order="C")) for part in parts])
        self.columns = setup.model.columns(x).to(self.device)
        self.y = per_trial(torch.stack([_targets(part.y, self.classification) for part in parts]), repeats)
        self.y = self.y.to(self.device)
        self.environments: Tensor | None = None
        if first.environment is not None:
            labels = torch.from_numpy(np.stack([part.environment for part in parts if part.environment is not None]))
            one_hot = torch.nn.functional.one_hot(labels).transpose(1, 2).float()  # [seed, environment, row]
            self.environments = per_trial(one_hot, repeats).to(self.device)
        self.seed_of_trial = torch.arange(len(seeds)).repeat_interleave(repeats)
        self.full = self.size == self.rows
        self.whole = _Batch(self.columns, self.y, self.outputs, _normalized(self.environments))

    def uniform(self, count: int) -> Tensor:
        """Numbers in [0, 1), [trial, count], every trial's from its own generator."""
        return torch.stack([torch.rand(count, generator=generator) for generator in self.generators])

    def batch(self, step: int, explored: Tensor | None) -> _Batch:
        """The rows of a step: all of them, or each trial's own share."""
        if self.full:
            return replace(self.whole, explored=explored)
        start = step % (self.rows // self.size)
        if start == 0:
            self.shuffled = torch.stack([torch.randperm(self.rows, generator=g) for g in self.generators])
        rows = self.shuffled[:, start * self.size : (start + 1) * self.size].to(self.device)  # [trial, row]
        return _Batch(
            columns=self.columns[self.seed_of_trial.unsqueeze(1), :, rows].transpose(1, 2).contiguous(),
            y=self.y.gather(1, rows),
            outputs=self.outputs,
            environments=_share_of(self.environments, rows),
            explored=_share_of(explored, rows),
        )


def _stack_hparams(method: Objective, trials: Sequence[Trial], device: torch.device) -> Hparams:
    stacked: dict[str, Any] = {}
    for name, dimension in method.search_space().items():
        values = [trial.hparams[name] for trial in trials]
        stacked[name] = values[0] if dimension.shared else torch.tensor(values, dtype=torch.float32, device=device)
    return Hparams(stacked)


def _targets(y: NDArray[Any], classification: bool) -> Tensor:
    return torch.from_numpy(y.astype(np.int64 if classification else np.float32))


def _normalized(weights: Tensor | None) -> Tensor | None:
    return None if weights is None else weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)


def _share_of(weights: Tensor | None, rows: Tensor) -> Tensor | None:
    """The weights [trial, row] or [trial, k, row] of each trial's own rows [trial, row]."""
    if weights is None:
        return None
    if weights.dim() == 3:
        rows = rows.unsqueeze(1).expand(-1, weights.shape[1], -1)
    return _normalized(weights.gather(-1, rows))
