"""How much CPU time methods take, as ratios to a fixed work: a machine that is slow or busy is so for both.

    python -m oodbench.nightly.speed erm srm      prints {"erm": 3.1, "srm": 9.8}

Each method trains a small pack that never changes, again and again, between runs of the reference. The reference is
torch alone, in the shapes of the packs: were it made of our code, a slower trainer would slow it down as well.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from oodbench.engine.data import TASKS, Environment, Task, TrainingRows
from oodbench.engine.models import Mlp
from oodbench.engine.recipe import Recipe
from oodbench.engine.trial import Setup, Trial, training_entropy
from oodbench.errors import WorkError, one_line
from oodbench.plugin.method import Method
from oodbench.settings.space import draw_configuration
from oodbench.study.plan import resolve_method

ROUNDS = 9
TRIALS, ROWS, FEATURES, WIDTH, STEPS = 4, 300, 10, 20, 200
LONGEST = 1200  # seconds
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Speed:
    """CPU time of methods, in units of the reference; or why there is none."""

    ratios: Mapping[str, float] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)


def measure(methods: Sequence[str]) -> Speed:
    """In a process of its own: nothing that this one imported or started is counted."""
    command = [sys.executable, "-m", "oodbench.nightly.speed", *methods]
    environment = os.environ | dict.fromkeys(THREADS, "1")
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, timeout=LONGEST, check=True)
    except subprocess.TimeoutExpired:
        raise WorkError(f"measuring speed took more than {LONGEST // 60} minutes.\nA method may hang.") from None
    except subprocess.CalledProcessError as error:
        raise WorkError(f"measuring speed ended with exit code {error.returncode}.\nIts output is above.") from None
    measured = json.loads(done.stdout)
    return Speed(measured["ratios"], measured["faults"])


def main(methods: Sequence[str]) -> None:
    import torch

    from oodbench.engine.trainer import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()  # as in workers
    works: dict[str, Callable[[], object]] = {}
    faults: dict[str, str] = {}
    reference = _reference()
    with contextlib.redirect_stdout(sys.stderr):  # methods talk
        for name in methods:
            try:
                works[name] = _training(resolve_method(name, {}).method, name)
                works[name]()  # the first time is another: things are imported and allocated
            except (Exception, SystemExit) as error:
                works.pop(name, None)
                faults[name] = one_line(error)
        reference()
        rounds = [{name: _against(reference, work) for name, work in works.items()} for _ in range(ROUNDS)]
    ratios = {name: float(np.median([measured[name] for measured in rounds])) for name in works}
    print(json.dumps({"ratios": ratios, "faults": faults}))


def _against(reference: Callable[[], object], work: Callable[[], object]) -> float:
    """What the work takes in units of the reference, just before and just after it."""
    before, taken, after = _seconds(reference), _seconds(work), _seconds(reference)
    return 2 * taken / (before + after)


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


def _training(method: Method, name: str) -> Callable[[], object]:
    """The defaults of the method, several times on the same rows, for each task that it does."""
    from oodbench.engine.trainer import Trainer

    setup = Setup(Mlp(width=(WIDTH,)), Recipe(steps=STEPS))
    hparams = draw_configuration(method.search_space(), {}, (0,), 0)
    trials = [Trial(index, hparams, 0, training_entropy(name, index, 0)) for index in range(TRIALS)]
    packs = [{0: _rows(task, "environments" in method.needs)} for task in TASKS if task in method.tasks]
    return lambda: [method.fit_pack(rows, trials, Trainer(setup)) for rows in packs]


def _rows(task: Task, labelled: bool) -> TrainingRows:
    rng = np.random.default_rng(0)
    environments = []
    for group, slope in enumerate((1.0, -1.0)):
        x = rng.normal(size=(ROWS // 2, FEATURES))
        signal = x[:, 0] + 0.5 * slope * x[:, 1] + 0.1 * rng.normal(size=len(x))
        environments.append(Environment(f"group {group}", x, signal if task == "regression" else (signal > 0) * 1))
    return TrainingRows.pooled(environments, task, 2, labelled, tuple(f"x{index}" for index in range(FEATURES)))


def _reference() -> Callable[[], object]:
    import torch

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(TRIALS, FEATURES, ROWS, generator=generator)
    y = x[:, :1]
    start = [
        0.1 * torch.randn(TRIALS, WIDTH, FEATURES, generator=generator),
        0.1 * torch.randn(TRIALS, 1, WIDTH, generator=generator),
    ]

    def work() -> None:
        layers = [weights.clone().requires_grad_() for weights in start]
        squares = [torch.zeros_like(weights) for weights in start]
        for _ in range(STEPS):
            loss = ((layers[1] @ (layers[0] @ x).relu()) - y).square().mean((1, 2)).sum()
            for layer, square, slope in zip(layers, squares, torch.autograd.grad(loss, layers), strict=True):
                square.mul_(0.999).addcmul_(slope, slope, value=0.001)
                layer.data.addcdiv_(slope, square.sqrt().add_(1e-8), value=-0.001)

    return work


if __name__ == "__main__":
    main(sys.argv[1:])
