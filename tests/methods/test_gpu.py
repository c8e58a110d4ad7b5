"""Every built-in method on a pretend GPU: no step waits for it, an exploration at most once; results are the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from oodbench import Linear, LossMethod, Method, Mlp, Recipe, Setup, Trainer
from oodbench.engine import gates
from oodbench.engine.checkpoint import Checkpoint
from oodbench.engine.trainer import Training
from oodbench.kit import clustering, common_mechanism
from oodbench.plugin.points import points
from oodbench.plugin.pretend import PretendGpu
from oodbench.plugin.registry import load
from oodbench.plugin.testing import _MethodChecks, _trials
from oodbench.plugin.traffic import Traffic

OFTEN = {"explore_every": 2, "explore_passes": 3, "width": 16, "rounds": 3, "weight_steps": 3}
SETUPS = {
    "all rows, and one exploration of a part": Setup(Linear(), Recipe(steps=4, explore=90), "cuda"),
    "batches, over two epochs": Setup(Mlp(width=(4,)), Recipe(steps=6, batch=40), "cuda"),
}
PAUSE = 3
DRAWS = {"fish", "hrm", "lisa", "marginal_dro", "mixup", "mmd", "rdm"}  # chance of their own, made on the CPU
ROUNDS_OF_KERHRM = 2 * OFTEN["rounds"]  # for two seeds


def on_gpu() -> Iterator[str]:
    for point in points("method"):
        method = load("method", point.name).cls
        if method is not None and issubclass(method, Method) and method.on_gpu:
            yield point.name


class Watched(PretendGpu):
    """Keeps apart what steps, and what explorations, send, fetch and wait for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.steps: list[Traffic] = []  # but for the first of a training, which sets things up
        self.explorations: list[Traffic] = []
        step, explore = Training.step, Training._explore

        def watch_step(training: Training, number: int) -> None:
            before, explored = self.traffic.copy(), len(self.explorations)
            step(training, number)
            here = self.traffic.since(before)
            for exploration in self.explorations[explored:]:
                here = here.since(exploration)
            self.steps += [here] if number else []

        def watch_explore(training: Training, number: int) -> object:
            before = self.traffic.copy()
            found = explore(training, number)
            if number:
                self.explorations.append(self.traffic.since(before))
            return found

        monkeypatch.setattr(Training, "step", watch_step)
        monkeypatch.setattr(Training, "_explore", watch_explore)


def train(name: str, setup: Setup, gpu: PretendGpu | None, pause_at: int | None = None) -> list[NDArray[Any]]:
    """What its models predict, of four trials on two seeds; after a pause, if it can, they go on from its bytes."""
    method = load("method", name).cls
    assert method is not None
    rows, validation = _MethodChecks(method)._problem(method.tasks[-1], 3)
    trials = _trials(method)[1:5]
    often = {key: value for key, value in OFTEN.items() if key in trials[0].hparams}
    trials = [replace(trial, hparams={**trial.hparams, **often}) for trial in trials]
    start = None
    with gpu or nullcontext():
        if pause_at is not None and method.pauses:
            before = Trainer(setup, stop=pause_at)
            method().fit_pack(rows, trials, before)
            assert before.paused is not None
            start = Checkpoint.from_bytes(before.paused.to_bytes())
        models: list[Any] = method().fit_pack(rows, trials, Trainer(setup, start))
    return [model.outputs(validation.x) for model in models]


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize("name", list(on_gpu()))
def test_no_step_waits(name: str, setup: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "BLOCK", 2)
    monkeypatch.setattr(clustering, "MOST_ROWS", 100)
    monkeypatch.setattr(clustering, "LOOK", 1)
    monkeypatch.setattr(common_mechanism, "STEPS", 3)
    gpu = Watched(monkeypatch)
    train(name, SETUPS[setup], gpu)

    method = load("method", name).cls
    assert method is not None
    assert gpu.traffic.to_gpu
    assert bool(gpu.steps) == issubclass(method, LossMethod)
    assert not any(step.waits or step.to_cpu for step in gpu.steps)
    assert all(exploration.waits.total() <= 1 for exploration in gpu.explorations)
    assert bool(gpu.explorations) == (name in ("hrm", "srm"))
    if name not in DRAWS and SETUPS[setup].recipe.batch == 0:
        assert not any(step.to_gpu for step in gpu.steps)


@pytest.mark.parametrize("name", list(on_gpu()))
def test_results_are_those_of_a_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU does in another way, to wait less, finds the same; also with a pause on the way."""
    monkeypatch.setattr(common_mechanism, "STEPS", 3)
    setup = SETUPS["batches, over two epochs"]
    there, here = train(name, setup, PretendGpu(), PAUSE), train(name, replace(setup, device="cpu"), None)
    assert all(np.array_equal(a, b) for a, b in zip(there, here, strict=True))


def test_kerhrm_waits_once_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_mechanism, "STEPS", 3)
    gpu = PretendGpu()
    train("kerhrm", SETUPS["batches, over two epochs"], gpu)
    assert gpu.traffic.waits["__bool__"] <= ROUNDS_OF_KERHRM
    assert set(gpu.traffic.waits) == {"__bool__", "tensor", "to", "cpu"}
    assert gpu.traffic.to_cpu["cpu"] == 2 * (1 + 5 + 1)  # of each seed the kernel, a basis of five, all coefficients
