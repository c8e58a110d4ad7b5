"""The training loop: the trials of a pack as one batched tensor program, with a count of what it took.

The parameters of all trials are one matrix [trial, parameter]; a step is one forward pass, one backward pass and
one update for all of them. Trials touch each other nowhere, so each ends as it would have ended alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from oodbench.engine.embeddings import with_embeddings
from oodbench.engine.fitted import FittedModel
from oodbench.engine.gates import Gates
from oodbench.engine.models import Layered
from oodbench.engine.networks import Network, Networks, Shape
from oodbench.engine.optimizers import OPTIMIZERS, Optimizer
from oodbench.engine.rows import Hparams, ManyRows, Program, Rows
from oodbench.engine.state import State
from oodbench.engine.tensor import Tensor
from oodbench.engine.trial import Setup, Trial
from oodbench.errors import TrainingFailed
from oodbench.settings.space import Space

if TYPE_CHECKING:
    import torch

    from oodbench.engine.batches import PackRows
    from oodbench.engine.checkpoint import Checkpoint
    from oodbench.engine.keeping import Keeper, Kept

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


class Objective(Protocol):
    """What the loop asks of a method."""

    gate_noise: ClassVar[float]
    optimizer: ClassVar[str]

    def search_space(self) -> Space: ...

    def networks(self, shape: Shape, hp: Hparams) -> Mapping[str, Network]: ...

    def start(self, rows: Rows, hp: Hparams) -> Mapping[str, Tensor]: ...

    def explores_at(self, step: int, hp: Hparams) -> bool: ...

    def explore(self, rows: Rows, hp: Hparams) -> Tensor: ...

    def direction(self, rows: Rows, hp: Hparams) -> Tensor: ...


class Trainer:
    """Trains loss methods in the setup of a study, and counts: the ledger has what it counted.

    With `stop`, a training pauses after so many steps, and `paused` is where it stands; with `start`, it goes on from
    there. A `keeper` keeps a long one from time to time, and goes on with one that it finds. All of that is for methods
    that train once (`Method.pauses`).

    Examples:
        >>> references = trainer.fit(ERM(), train, trials)
    """

    def __init__(
        self, setup: Setup, start: Checkpoint | None = None, stop: int | None = None, keeper: Keeper | None = None
    ) -> None:
        self.setup, self.start, self.stop, self.keeper = setup, start, stop, keeper
        self.gradient_steps = 0  # of all trials together
        self.row_visits = 0  # rows that these steps saw, of all trials together
        self.paused: Checkpoint | None = None

    @cached_property
    def device(self) -> torch.device:
        """The device of the study, as trainings use it: a GPU without TF32."""
        from oodbench.engine.device import prepare

        return prepare(self.setup.device)

    def fit(
        self, method: Objective, train: PackRows, trials: Sequence[Trial], steps: Sequence[int] | None = None
    ) -> list[FittedModel]:
        """Fitted models of the trials, in their order. `train` has the rows of every seed, or of every trial.

        Each is as it is after the recipe's steps, or after its own number of `steps`.
        """
        order = sorted(range(len(trials)), key=lambda position: trials[position].seed)
        rows = train if isinstance(train, Mapping) else [train[position] for position in order]
        training = Training(method, rows, [trials[position] for position in order], self)
        ends = [self.setup.recipe.steps if steps is None else steps[position] for position in order]
        if self.stop is not None:
            ends = [min(end, self.stop) for end in ends]
        before = self.gradient_steps, self.row_visits
        self._go_on(training)
        for step in range(training.done, max(ends)):
            training.step(step)
            if step + 1 in ends:
                training.end([end == step + 1 for end in ends])
            if self.keeper is not None and self.keeper.is_due:
                self.keeper.keep(lambda: self._kept(training, *before))
        if self.stop is not None:
            self._pause(training)
        fitted = dict(zip(order, training.models(training.ended), strict=True))
        return [fitted[position] for position in range(len(trials))]

    def _go_on(self, training: Training) -> None:
        if self.start is None and self.keeper is None:
            return
        from oodbench.engine.checkpoint import key_of
        from oodbench.engine.pausing import resume

        kept = self.keeper.find(tuple(map(key_of, training.trials))) if self.keeper is not None else None
        if kept is not None:
            resume(training, kept.checkpoint)
            self.gradient_steps += kept.gradient_steps
            self.row_visits += kept.row_visits
        elif self.start is not None:
            resume(training, self.start)

    def _kept(self, training: Training, steps_before: int, visits_before: int) -> Kept | None:
        from oodbench.engine.keeping import Kept
        from oodbench.engine.pausing import pause

        now = pause(training)
        steps, visits = self.gradient_steps - steps_before, self.row_visits - visits_before
        return None if now is None else Kept(now, steps, visits)

    def _pause(self, training: Training) -> None:
        from oodbench.engine.checkpoint import Checkpoint
        from oodbench.engine.pausing import pause

        now = pause(training)
        if now is None:
            raise TrainingFailed(
                f"{training.name} explores by a plain function: use a KeptRule, or set pauses = False."
            )
        if self.paused is not None and set(self.paused.trials) & set(now.trials):
            raise TrainingFailed(f"{training.name} trains in several stages: set pauses = False.")
        self.paused = now if self.paused is None else Checkpoint.join([self.paused, now])

    def optimizer(
        self, name: str, parameters: Tensor, learning_rate: Tensor, weight_decay: Tensor, rows: int = 0
    ) -> CountedOptimizer:
        """An optimizer of parameters [trial, ...] whose steps are counted: one of every trial, on so many rows."""
        return CountedOptimizer(self, OPTIMIZERS[name](parameters, learning_rate, weight_decay), len(parameters), rows)


class Training:
    """One training of a pack: its trials come seed by seed."""

    def __init__(self, method: Objective, train: PackRows, trials: Sequence[Trial], trainer: Trainer) -> None:
        from oodbench.engine.batches import StackedRows
        from oodbench.engine.chance import Chance

        self.method, self.name, self.trials = method, type(method).__name__, trials
        self.done = 0  # steps
        first = next(iter(train.values())) if isinstance(train, Mapping) else train[0]
        setup = replace(trainer.setup, model=with_embeddings(trainer.setup.model, first.categories))
        chance = Chance([trial.entropy for trial in trials], trainer.device)
        self.data = StackedRows(train, trials, setup)
        outputs = setup.recipe.outputs(self.data.classification, first.classes)
        units = setup.model.units(outputs)[-2] if setup.model.learns_representation else outputs
        shape = Shape(self.data.features, units, outputs, self.data.environments, self.data.rows)
        self.hp = stack_hparams(method.search_space(), trials, trainer.device)
        networks = Networks(method.networks(shape, self.hp))
        if method.gate_noise and not isinstance(setup.model, Layered):
            raise TrainingFailed(f"{self.name} has gates before the first layer: use the model linear or mlp.")
        gates = Gates(method.gate_noise, chance.generators, shape.features)
        self.program = Program(setup, shape, gates, networks, chance, State(self.name, {}, len(trials)))

        size = setup.model.parameter_count(shape.features, outputs)
        of_model = setup.model.initial(chance.uniform(size), shape.features, outputs)
        self.parameters = networks.append(gates.append(of_model), chance).requires_grad_()
        self.optimizer = trainer.optimizer(
            method.optimizer or setup.recipe.optimizer,
            self.parameters,
            self.hp.learning_rate,
            self.hp.weight_decay,
            rows=self.data.size,
        )
        self.explored: Tensor | None = None
        self.ended = self.parameters.detach().clone()  # the parameters of trials that are at their end

    def step(self, step: int) -> None:
        """One gradient step of every trial."""
        self.optimizer.step(self.direction(step))
        self.done = step + 1

    def end(self, which: Sequence[bool]) -> None:
        """These trials are at their end; others of the pack may go on."""
        now = self.parameters.detach()
        for place in [slice(None)] if all(which) else [place for place, ends in enumerate(which) if ends]:
            self.ended[place] = now[place]

    def direction(self, step: int) -> Tensor:
        """What the optimizer steps against: [trial, parameter]."""
        if self.method.explores_at(step, self.hp):
            self.explored = self._explore(step)
        rows = self.rows(step)
        if step == 0:
            self.program.state = State(self.name, self.method.start(rows, self.hp), len(rows.y))
        direction = self.method.direction(rows, self.hp)
        if getattr(direction, "shape", None) != self.parameters.shape:
            raise TrainingFailed(
                f"{self.name}.direction must return a tensor [trial, parameter], shape {tuple(self.parameters.shape)}, "
                f"not {tuple(getattr(direction, 'shape', ())) or type(direction).__name__}."
            )
        return direction

    def rows(self, step: int) -> Rows:
        """The rows of a step as the method sees them."""
        return self.program.forward(self.parameters, self.data.batch(step, self.explored), step)

    def models(self, parameters: Tensor | None = None) -> list[FittedModel]:
        """The models as they are now, or with other parameters [trial, parameter]."""
        setup, outputs = self.program.setup, self.program.shape.outputs
        of_model, _ = self.program.networks.split(self.parameters.detach() if parameters is None else parameters)
        model, finished = self.program.gates.fold(of_model, setup.model, outputs)
        return [
            FittedModel(model, setup.recipe, outputs, self.data.classification, parameters.copy())
            for parameters in finished.cpu().numpy()
        ]

    def _explore(self, step: int) -> Tensor | None:
        """What the method finds; None where it gives a rule."""
        parameters = self.parameters.detach()

        def all_rows() -> Rows:
            return self.program.forward(parameters, replace(self.data.whole, explored=self.explored), step)

        if self.data.explored_rows == self.data.rows:
            found = self.method.explore(all_rows(), self.hp)
        else:
            part = self.program.forward(parameters, self.data.part(self.explored), step)
            found = self.method.explore(ManyRows(all_rows, part), self.hp)
        if self.program.rule is not None:
            return None
        trials, rows = len(self.data.orders), self.data.rows
        shape = tuple(getattr(found, "shape", ()))
        if len(shape) not in (2, 3) or shape[0] != trials or shape[-1] != rows:
            raise TrainingFailed(
                f"{self.name}.explore must return weights [trial, row] or [trial, k, row] of all training rows, "
                f"shape ({trials}, {rows}), not {shape or type(found).__name__}."
            )
        return found


@dataclass(frozen=True, eq=False)
class CountedOptimizer:
    trainer: Trainer
    optimizer: Optimizer
    trials: int
    rows: int

    def step(self, gradient: Tensor) -> None:
        self.optimizer.step(gradient)
        self.trainer.gradient_steps += self.trials
        self.trainer.row_visits += self.trials * self.rows


def keep_freed_memory() -> None:
    """Tell glibc to keep the memory of freed tensors: taking it anew each step costs more than the arithmetic."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        libc.mallopt(_M_TRIM_THRESHOLD, 1 << 30)


def stack_hparams(space: Space, trials: Sequence[Trial], device: Any = "cpu") -> Hparams:
    """The hyper-parameters of the trials, each [trial]; what they share is a plain value."""
    import torch

    stacked: dict[str, Any] = {}
    for name, dimension in space.items():
        values = [trial.hparams[name] for trial in trials]
        stacked[name] = values[0] if dimension.shared else torch.tensor(values, dtype=torch.float32, device=device)
    return Hparams(stacked)
