"""64 trainings in packs against an eager loop over them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from oodbench import Linear, Mlp, Recipe
from oodbench.method import TrainingRows
from oodbench.models import Model
from oodbench.pack import keep_freed_memory, train_pack
from oodbench.trial import Setup, Trial, divide, trials_that_fit
from oodbench_methods.erm import ERM

ROWS, FEATURES, STEPS, TRIALS = 2200, 10, 2000, 64
EAGER_TRIALS = 8  # the eager loop does this many before the packs and as many after; its time is scaled up


def eager_seconds(model: Model) -> float:
    command = [sys.executable, Path(__file__).parent / "eager.py", model.name, str(EAGER_TRIALS)]
    return float(subprocess.check_output(command, text=True))


def packed(model: Model) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, FEATURES))
    rows = TrainingRows(x, x @ rng.normal(size=FEATURES) + rng.normal(size=ROWS), "regression", 2)
    setup = Setup(model, Recipe(steps=STEPS))
    trials = [
        Trial(index, {"learning_rate": float(rate), "weight_decay": 0.0}, seed=0, entropy=index)
        for index, rate in enumerate(np.geomspace(1e-3, 1e-1, TRIALS))
    ]
    capacity = trials_that_fit(setup, ROWS, 1)
    for pack in divide("bench", trials, alike=lambda trial: 0, capacity=lambda trial: capacity):
        train_pack(ERM(), {0: rows}, pack.trials, setup)


@pytest.mark.parametrize(
    ("model", "floor"), [(Linear(intercept=False), 20), (Mlp(width=(20, 10)), 4)], ids=["linear", "mlp 20-10"]
)
def test_packs_against_an_eager_loop(
    benchmark: BenchmarkFixture, report: Callable[[str], None], model: Model, floor: float
) -> None:
    torch.set_num_threads(1)
    keep_freed_memory()  # as a worker does
    before = eager_seconds(model)
    benchmark.pedantic(packed, args=(model,), rounds=3)
    slow = (before + eager_seconds(model)) / 2 * TRIALS / EAGER_TRIALS
    fast = benchmark.stats.stats.median
    ratio = slow / fast
    report(f"64 trainings, {model.name}: eager {slow:.1f} s, packed {fast:.2f} s, ratio {ratio:.1f}x (floor {floor}x)")
    assert ratio >= floor
