"""64 trainings in packs against an eager loop over them; and what a step of SRM costs beside one of ERM."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from oodbench import Linear, LossMethod, Mlp, Recipe
from oodbench.engine.data import TrainingRows
from oodbench.engine.models import Model
from oodbench.engine.trainer import Trainer, keep_freed_memory
from oodbench.engine.trial import Setup, Trial, trials_that_fit
from oodbench.study.pack import divide
from oodbench_methods.erm import ERM
from oodbench_methods.srm import SRM

ROWS, FEATURES, STEPS, TRIALS = 2200, 10, 2000, 64
EAGER_TRIALS = {"erm": 8, "srm": 2}  # so many before the packs and as many after; their time is scaled up
LINEAR, MLP = Linear(intercept=False), Mlp(width=(20, 10))


def eager_seconds(method: str, model: Model) -> float:
    command = [sys.executable, Path(__file__).parent / "eager.py", method, model.name, str(EAGER_TRIALS[method])]
    return float(subprocess.check_output(command, text=True))


def packed(method: LossMethod, model: Model, steps: int = STEPS) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, FEATURES))
    rows = TrainingRows(x, x @ rng.normal(size=FEATURES) + rng.normal(size=ROWS), "regression", 2)
    setup = Setup(model, Recipe(steps=steps))
    defaults = {name: dimension.default for name, dimension in method.search_space().items()}
    trials = [
        Trial(index, defaults | {"learning_rate": float(rate)}, seed=0, entropy=index)
        for index, rate in enumerate(np.geomspace(1e-3, 1e-1, TRIALS))
    ]
    capacity = trials_that_fit(setup, ROWS, 1)
    for pack in divide("bench", trials, lambda trial: 0, lambda trial: capacity, lambda trial: 1):
        Trainer(setup).fit(method, {0: rows}, pack.trials)


@pytest.fixture(autouse=True)
def as_a_worker_does() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()


@pytest.mark.parametrize(
    ("method", "model", "floor"),
    [(ERM(), LINEAR, 20), (ERM(), MLP, 4), (SRM(), LINEAR, 10), (SRM(), MLP, 3)],
    ids=["erm linear", "erm mlp 20-10", "srm linear", "srm mlp 20-10"],
)
def test_packs_against_an_eager_loop(
    benchmark: BenchmarkFixture, report: Callable[[str], None], method: LossMethod, model: Model, floor: float
) -> None:
    name = type(method).__name__.lower()
    before = eager_seconds(name, model)
    benchmark.pedantic(packed, args=(method, model), rounds=3 if name == "erm" else 1)
    slow = (before + eager_seconds(name, model)) / 2 * TRIALS / EAGER_TRIALS[name]
    fast = benchmark.stats.stats.median
    ratio = slow / fast
    report(f"64 x {name}, {model.name}: eager {slow:.1f} s, packed {fast:.2f} s, ratio {ratio:.1f}x (floor {floor}x)")
    assert ratio >= floor


@pytest.mark.parametrize("model", [LINEAR, MLP], ids=["linear", "mlp 20-10"])
def test_an_srm_training_against_an_erm_training(report: Callable[[str], None], model: Model) -> None:
    def seconds(method: LossMethod) -> float:
        started = time.perf_counter()
        packed(method, model, steps=400)
        return time.perf_counter() - started

    pairs = [(seconds(SRM()), seconds(ERM())) for _ in range(3)]  # in turn, so that both see the same machine
    ratio = statistics.median(srm / erm for srm, erm in pairs)
    report(f"srm / erm, {model.name}, same steps: {ratio:.1f}x (at most 4x)")
    assert ratio <= 4
