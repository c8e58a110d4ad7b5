"""Every loss method: a pack of trainings against the same trainings one by one, in one run; the table is printed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from oodbench import Linear, LossMethod, Mlp, Predictor, Recipe, Setup, Trainer, TrainingRows, Trial
from oodbench.engine.data import Task
from oodbench.engine.models import Model
from oodbench.engine.trainer import keep_freed_memory
from oodbench.plugin.registry import find, names

ROWS, FEATURES, TRIALS, ALONE = 2000, 10, 32, 3
STEPS = {"linear": 60, "mlp": 30}
FLOORS = {"linear": (10.0, 3.0), "mlp": (3.5, 2.0)}  # of the geometric mean, and of each


def rows_of(task: Task) -> TrainingRows:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, FEATURES))
    signal = x @ rng.normal(size=FEATURES) + rng.normal(size=ROWS)
    y = signal if task == "regression" else (signal > 0).astype(np.int64)
    return TrainingRows(x, y, task, 2, np.arange(ROWS) % 3)


def trials_of(method: LossMethod, count: int) -> list[Trial]:
    defaults = {name: dimension.default for name, dimension in method.search_space().items()}
    rates = np.geomspace(1e-3, 1e-2, count)
    return [Trial(number, defaults | {"learning_rate": float(rate)}, 0, number) for number, rate in enumerate(rates)]


def seconds_for(method: LossMethod, rows: TrainingRows, trials: Sequence[Trial], setup: Setup) -> float:
    started = time.process_time()
    fitted: list[Predictor] = method.fit_pack({0: rows}, trials, Trainer(setup))
    assert len(fitted) == len(trials)
    return time.process_time() - started


@pytest.mark.parametrize("model", [Linear(), Mlp(width=(20, 10))], ids=["linear", "mlp 20-10"])
def test_packs_against_one_by_one(model: Model, report: Callable[[str], None]) -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    setup = Setup(model, Recipe(steps=STEPS[model.name]))
    ratios: dict[str, float] = {}
    for name in names("method"):
        cls = find("method", name)
        if not issubclass(cls, LossMethod) or name == "oracle":
            continue
        method, rows = cls(), rows_of(cls.tasks[0])
        seconds_for(method, rows, trials_of(method, 2), setup)  # warm
        one_by_one = sum(seconds_for(method, rows, [trial], setup) for trial in trials_of(method, TRIALS)[:ALONE])
        packed = seconds_for(method, rows, trials_of(method, TRIALS), setup)
        ratios[name] = one_by_one / ALONE * TRIALS / packed
        step = packed / TRIALS / setup.recipe.steps
        report(f"{model.name:6} {name:16} {1000 * step:8.3f} ms a training and step, {ratios[name]:5.1f} x")
    mean = math.exp(np.mean(np.log(list(ratios.values()))))
    report(f"{model.name}: geometric mean {mean:.1f} x, least {min(ratios.values()):.1f} x")
    least_mean, least = FLOORS[model.name]
    assert mean >= least_mean
    assert min(ratios.values()) >= least
