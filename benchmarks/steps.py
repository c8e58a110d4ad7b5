"""What a gradient step costs: in a pack as large as a study's, in an eager loop over batches, and the matrix products
of the model alone. All in milliseconds of CPU time for one training and step.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch

from oodbench import Linear, LossMethod, Mlp, Recipe, Setup, Trainer, TrainingRows, Trial
from oodbench.engine.models import Model
from oodbench.engine.trainer import Training
from oodbench.engine.trial import trials_that_fit
from oodbench_methods.erm import ERM

FEATURES, CLASSES = 20, 2
STEPS = {"linear": 100, "20,10": 60}  # of wider models 15
ROUNDS = 3  # of which the quickest counts: what else runs on the machine only makes steps slower


def model_of(widths: str) -> Model:
    return Linear() if widths == "linear" else Mlp(width=tuple(map(int, widths.split(","))))


@cache
def rows_of(rows: int, features: int = FEATURES) -> TrainingRows:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, features))
    signal = x @ rng.normal(size=features) / np.sqrt(features) + rng.normal(size=rows)
    return TrainingRows(x, (signal > 0).astype(np.int64), "classification", CLASSES)


def pack_size(widths: str, rows: int) -> int:
    return trials_that_fit(Setup(model_of(widths), Recipe(steps=1)), rows, CLASSES)


def packed(
    widths: str, rows: int, features: int = FEATURES, method: LossMethod | None = None, trials: int | None = None
) -> float:
    """In a pack as large as a study's, or of so many trials."""
    method = method or ERM()
    setup = Setup(model_of(widths), Recipe(steps=1))
    defaults = {name: dimension.default for name, dimension in method.search_space().items()}
    rates = np.geomspace(1e-3, 1e-2, trials or pack_size(widths, rows))
    pack = [Trial(place, defaults | {"learning_rate": float(rate)}, 0, place) for place, rate in enumerate(rates)]
    training = Training(method, {0: rows_of(rows, features)}, pack, Trainer(setup))
    explores = type(method).explore is not LossMethod.explore
    steps = 40 if explores else STEPS.get(widths, 15)  # two explorations of SRM's
    numbers = itertools.count()
    return _per_step(lambda: training.step(next(numbers)), steps) / len(pack)


def eager(widths: str, rows: int, features: int = FEATURES, rounds: int = ROUNDS) -> float:
    script = Path(__file__).parent / "eager_batches.py"
    command = [sys.executable, script, widths, str(rows), str(features), str(STEPS.get(widths, 15))]
    return min(float(subprocess.check_output(command, text=True)) for _ in range(rounds))


def packed_and_eager(widths: str, rows: int, features: int = FEATURES) -> tuple[float, float]:
    """Both in turn, so that both see the same machine; of each the quickest counts."""
    pairs = [(packed(widths, rows, features), eager(widths, rows, features, rounds=1)) for _ in range(ROUNDS)]
    return min(ours for ours, _ in pairs), min(theirs for _, theirs in pairs)


def products(widths: str, rows: int, features: int = FEATURES, trials: int | None = None) -> float:
    """Forward, and backward to weights and inputs, of a pack: less a step cannot cost."""
    trials = trials or pack_size(widths, rows)
    batch = Recipe(steps=1).batch_rows(rows)
    hidden = [] if widths == "linear" else [int(width) for width in widths.split(",")]
    sizes = [features, *hidden, CLASSES]
    layers = [(torch.randn(trials, units, inputs), inputs, units) for inputs, units in itertools.pairwise(sizes)]
    x = torch.randn(features, batch)
    made = {units: torch.randn(trials, units, batch) for units in sizes[1:]}

    def step() -> None:
        weights, _, units = layers[0]
        stacked = weights.reshape(trials * units, features)
        torch.mm(stacked, x)  # the rows of a seed are the same for all of its trials
        torch.mm(made[units].reshape(trials * units, batch), x.T)
        for weights, inputs, units in layers[1:]:
            torch.bmm(weights, made[inputs])
            torch.bmm(made[units], made[inputs].transpose(1, 2))
            torch.bmm(weights.transpose(1, 2), made[units])

    return _per_step(step, STEPS.get(widths, 15)) / trials


def _per_step(step: Callable[[], object], steps: int) -> float:
    step()  # warm
    taken = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(steps):
            step()
        taken.append(time.process_time() - started)
    return 1000 * min(taken) / steps
