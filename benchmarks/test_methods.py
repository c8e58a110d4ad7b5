"""Closed forms against the loops they replace, and KerHRM as rows grow."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from oodbench import Linear, Recipe
from oodbench.engine.data import TrainingRows
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial
from oodbench.kit import factor_slopes, fit_references, infer_environments
from oodbench_datasets.selection_bias import SelectionBias
from oodbench_methods.erm import ERM

ADAM_STEPS = 10_000


def selection_bias_rows() -> TrainingRows:
    dataset = SelectionBias()
    return TrainingRows.pooled(dataset.train(0), dataset.task, dataset.classes, False, dataset.columns)


def split_by_gradient(slopes: torch.Tensor) -> None:
    """EIIL's split of slopes [row, input] as the authors find it: soft assignments by Adam."""
    logits = torch.randn(len(slopes), 1, generator=torch.Generator().manual_seed(0)).requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=0.001)
    for _ in range(ADAM_STEPS):
        optimizer.zero_grad()
        share = logits.sigmoid()
        (-((share * slopes).mean(0).square().sum() + ((1 - share) * slopes).mean(0).square().sum())).backward()
        optimizer.step()


def test_eiils_split_against_gradient_steps(benchmark: BenchmarkFixture, report: Callable[[str], None]) -> None:
    torch.set_num_threads(1)
    rows = selection_bias_rows()
    trainer = Trainer(Setup(Linear(intercept=False), Recipe(steps=500)))
    reference = fit_references(ERM(), {0: rows}, [Trial(0, {}, 0, 1)], trainer)[0]
    slopes = torch.tensor(factor_slopes(reference, rows), dtype=torch.float32)
    started = time.perf_counter()
    split_by_gradient(slopes)
    slow = time.perf_counter() - started
    benchmark(infer_environments, reference, rows)
    fast = benchmark.stats.stats.median
    report(
        f"eiil's split, 2200 rows: Adam {slow:.2f} s, alternation {fast * 1e6:.0f} µs, {slow / fast:.0f}x (floor 1000x)"
    )
    assert slow / fast >= 1000


KERHRM = """
import json, resource, sys, time
import numpy as np, torch
from oodbench import Linear, Recipe, TrainingRows
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial
from oodbench_datasets.selection_bias import SelectionBias
from oodbench_methods.kerhrm import KerHRM

torch.set_num_threads(1)
rows = int(sys.argv[1])
data = SelectionBias(majority=rows * 10 // 11, minority=rows - rows * 10 // 11)
train = TrainingRows.pooled(data.train(0), data.task, 2, False, None)
hparams = {name: dimension.default for name, dimension in KerHRM().search_space().items()}
started = time.perf_counter()
model = KerHRM().fit_pack({0: train}, [Trial(0, hparams, 0, 1)], Trainer(Setup(Linear(), Recipe())))[0]
model.predict(train.x)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps([time.perf_counter() - started, peak]))
"""


def test_kerhrm_as_rows_grow(report: Callable[[str], None]) -> None:
    figures = {
        rows: json.loads(subprocess.check_output([sys.executable, "-c", KERHRM, str(rows)], text=True))
        for rows in (2_200, 10_000, 100_000)
    }
    for rows, (seconds, peak) in figures.items():
        report(f"kerhrm, {rows} rows: {seconds:.1f} s, {peak:.2f} GB")
    growth = figures[100_000][0] / figures[10_000][0]
    report(f"ten times the rows: {growth:.1f}x the time (at most 12x)")
    assert figures[2_200][0] < 5
    assert figures[100_000][0] < 60
    assert figures[100_000][1] < 4
    assert growth <= 12
    assert np.isfinite(growth)
