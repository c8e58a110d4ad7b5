"""What a step costs as rows and columns grow, in packs and in an eager loop over batches; and SRM beside ERM.

All in milliseconds of CPU time for one training and step, both sides in one run; the table is printed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from oodbench import Linear, LossMethod, Mlp, Recipe, Setup, Trainer, TrainingRows, Trial
from oodbench.engine.models import Model
from oodbench.engine.trainer import Training, keep_freed_memory
from oodbench.engine.trial import trials_that_fit
from oodbench_methods.erm import ERM
from oodbench_methods.srm import SRM

FEATURES = 20
MODELS: dict[str, Model] = {"linear": Linear(), "20,10": Mlp(width=(20, 10)), "256,256": Mlp(width=(256, 256))}
STEPS = {"linear": 100, "20,10": 60, "256,256": 15}
ROUNDS = 3  # of which the quickest counts: what else runs on the machine only makes steps slower


@cache
def rows_of(rows: int, features: int = FEATURES) -> TrainingRows:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, features))
    signal = x @ rng.normal(size=features) / np.sqrt(features) + rng.normal(size=rows)
    return TrainingRows(x, (signal > 0).astype(np.int64), "classification", 2)


def packed(model: str, rows: int, features: int = FEATURES, method: LossMethod | None = None) -> float:
    """In a pack as large as a study's."""
    method = method or ERM()
    setup = Setup(MODELS[model], Recipe(steps=1))
    defaults = {name: dimension.default for name, dimension in method.search_space().items()}
    rates = np.geomspace(1e-3, 1e-2, trials_that_fit(setup, rows, 2))
    trials = [Trial(place, defaults | {"learning_rate": float(rate)}, 0, place) for place, rate in enumerate(rates)]
    training = Training(method, {0: rows_of(rows, features)}, trials, Trainer(setup))
    steps = 40 if isinstance(method, SRM) else STEPS[model]  # two explorations of SRM's
    training.step(0)  # warm
    taken = []
    for number in range(ROUNDS):
        started = time.process_time()
        for step in range(steps):
            training.step(1 + number * steps + step)
        taken.append(time.process_time() - started)
    return 1000 * min(taken) / steps / len(trials)


def eager(model: str, rows: int, features: int = FEATURES) -> float:
    script = Path(__file__).parent / "eager_batches.py"
    command = [sys.executable, script, model, str(rows), str(features), str(STEPS[model])]
    return min(float(subprocess.check_output(command, text=True)) for _ in range(ROUNDS))


@pytest.fixture(autouse=True)
def as_a_worker_does() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()


@pytest.mark.parametrize(("model", "floor"), [("linear", 8), ("20,10", 3), ("256,256", 1)])
def test_packs_against_eager_at_200000_rows(report: Callable[[str], None], model: str, floor: float) -> None:
    ours, theirs = packed(model, 200_000), eager(model, 200_000)
    report(
        f"{model:8} 200,000 rows: packed {ours:7.3f} ms, eager {theirs:7.3f} ms, {theirs / ours:5.1f}x (floor {floor}x)"
    )
    assert theirs / ours >= floor


@pytest.mark.parametrize("model", ["linear", "20,10"])
def test_a_step_costs_the_same_however_many_rows_there_are(report: Callable[[str], None], model: str) -> None:
    cost = {rows: packed(model, rows) for rows in (20_000, 200_000, 2_000_000)}
    for rows, milliseconds in cost.items():
        report(f"{model:8} {rows:9,} rows: {milliseconds:7.3f} ms a step")
    growth = cost[2_000_000] / cost[20_000]
    report(f"{model:8} 2,000,000 against 20,000 rows: {growth:.2f}x (at most 1.3x)")
    assert growth <= 1.3


@pytest.mark.parametrize(("model", "floor"), [("linear", 8), ("256,256", 1)])
def test_wide_tables(report: Callable[[str], None], model: str, floor: float) -> None:
    ours, theirs = packed(model, 20_000, 500), eager(model, 20_000, 500)
    ratio = theirs / ours
    report(f"{model:8} 20,000 x 500: packed {ours:.3f} ms, eager {theirs:.3f} ms, {ratio:.1f}x (floor {floor}x)")
    assert ratio >= floor


@pytest.mark.parametrize("rows", [2_000, 20_000, 200_000])
def test_srm_against_erm(report: Callable[[str], None], rows: int) -> None:
    srm, erm = packed("20,10", rows, method=SRM()), packed("20,10", rows)
    report(f"20,10    {rows:9,} rows: srm {srm:.3f} ms, erm {erm:.3f} ms, {srm / erm:.1f}x (at most 4x)")
    assert srm / erm <= 4
