"""Pausing a training, and going on: everything that changes from step to step, and nothing that does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from oodbench.engine.checkpoint import Checkpoint, key_of
from oodbench.engine.device import send
from oodbench.engine.gates import BLOCK
from oodbench.engine.optimizers import Optimizer
from oodbench.engine.rows import Program
from oodbench.engine.rules import KeptRule
from oodbench.engine.state import State
from oodbench.engine.trial import Trial

OPTIMIZER, STATE, RULE = "optimizer.", "state.", "rule."


class Stepping(Protocol):
    @property
    def optimizer(self) -> Optimizer: ...


class Training(Protocol):
    """What is asked of a training to pause it, and to let it go on."""

    done: int  # steps
    explored: Tensor | None

    @property
    def name(self) -> str: ...

    @property
    def trials(self) -> Sequence[Trial]: ...

    @property
    def program(self) -> Program: ...

    @property
    def parameters(self) -> Tensor: ...

    @property
    def ended(self) -> Tensor: ...

    @property
    def optimizer(self) -> Stepping: ...


def pause(training: Training) -> Checkpoint | None:
    """The training as it stands; None where it explores by a plain function, which cannot be kept."""
    program, optimizer = training.program, training.optimizer.optimizer
    tensors = {
        "parameters": training.parameters,
        "ended": training.ended,
        "generators": torch.stack([generator.get_state() for generator in program.chance.generators]),
    }
    tensors |= {OPTIMIZER + name: getattr(optimizer, name) for name in optimizer.moments}
    tensors |= {STATE + name: tensor for name, tensor in program.state.tensors.items()}
    if training.explored is not None:
        tensors["explored"] = training.explored
    if program.gates.block >= 0:
        tensors["gates"] = program.gates.drawn.transpose(0, 1)  # [trial, step, feature]
    rule = program.rule
    if rule is not None:
        if not isinstance(rule, KeptRule):
            return None
        tensors |= {RULE + name: tensor for name, tensor in rule.tensors().items()}
    return Checkpoint(
        tuple(map(key_of, training.trials)),
        training.done,
        "" if rule is None else rule.rule_name(),
        {name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()},
    )


def resume(training: Training, checkpoint: Checkpoint) -> None:
    """Make a training that has not begun go on from where another one of these trials was paused."""
    program, optimizer, device = training.program, training.optimizer.optimizer, training.parameters.device
    tensors = {name: torch.from_numpy(array) for name, array in checkpoint.take(training.trials).arrays.items()}
    for generator, state in zip(program.chance.generators, tensors.pop("generators"), strict=True):
        generator.set_state(state.clone())  # torch reads it as if it were aligned
    on_device = {name: send(tensor, device) for name, tensor in tensors.items()}
    training.done = checkpoint.step
    optimizer.parameters.copy_(on_device["parameters"])  # also those of the training: they share the memory
    training.ended.copy_(on_device["ended"])
    optimizer.go_on(_under(OPTIMIZER, on_device), checkpoint.step)
    program.state = State(training.name, _under(STATE, on_device), len(training.trials))
    training.explored = on_device.get("explored")
    if "gates" in on_device:
        program.gates.drawn = on_device["gates"].transpose(0, 1).contiguous()  # [step, trial, feature]
        program.gates.block = (checkpoint.step - 1) // BLOCK
    if checkpoint.rule:
        program.rule = KeptRule.find(checkpoint.rule).of_tensors(_under(RULE, on_device))


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
