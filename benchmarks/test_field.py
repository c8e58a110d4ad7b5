"""Every loss method: a pack of trainings against eager trainings one after the other, in one run; the table is printed.

Both sides in milliseconds of CPU time for a training and step. Before, where a loss is not drawn at random, both sides
are shown to compute the same one. The packs' own engine, one training at a time, is there for information.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from oodbench import Linear, LossMethod, Mlp, Predictor, Recipe, Setup, Trainer, TrainingRows, Trial
from oodbench.engine.data import Task
from oodbench.engine.models import Model
from oodbench.engine.trainer import Training, keep_freed_memory
from oodbench.engine.trial import trials_that_fit
from oodbench.plugin.registry import find, names

ROWS, FEATURES, CLASSES, ALONE = 2000, 10, 2, 3
STEPS = {"linear": 60, "mlp": 30}
FLOORS = {"linear": (10.0, 3.0), "mlp": (3.5, 2.0)}  # of the geometric mean, and of each
SCRIPT = Path(__file__).parent / "eager_field.py"
ENGINE_ONLY = ("hrm",)  # whose eager form would be a project of its own: the engine, one by one, is its rival
NEAR, AGAIN = 1.3, 3  # times the floor: what is that near is measured again, because the machine may have been busy
DRAWN = ("fish", "lisa", "mixup")
STAGES = ("afr", "dfr", "dwr", "eiil", "irm_matrix", "jtt", "reweight", "srdo", "subsample")
COMPARED_ROWS, LATE, CLOSE = 300, 200, 1e-4


def rows_of(task: Task, rows: int = ROWS) -> TrainingRows:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, FEATURES))
    signal = x @ rng.normal(size=FEATURES) + rng.normal(size=rows)
    y = signal if task == "regression" else (signal > 0).astype(np.int64)
    return TrainingRows(x, y, task, CLASSES, np.arange(rows) % 3)


def loss_methods() -> dict[str, LossMethod]:
    found = {name: find("method", name) for name in names("method") if name != "oracle"}
    return {name: cls() for name, cls in found.items() if issubclass(cls, LossMethod)}


def trials_of(method: LossMethod, count: int) -> list[Trial]:
    defaults = {name: dimension.default for name, dimension in method.search_space().items()}
    rates = np.geomspace(1e-3, 1e-2, count)
    return [Trial(number, defaults | {"learning_rate": float(rate)}, 0, number) for number, rate in enumerate(rates)]


def seconds_for(method: LossMethod, rows: TrainingRows, trials: Sequence[Trial], setup: Setup) -> float:
    started = time.process_time()
    fitted: list[Predictor] = method.fit_pack({0: rows}, trials, Trainer(setup))
    assert len(fitted) == len(trials)
    return time.process_time() - started


def seconds_in_pack(method: LossMethod, rows: TrainingRows, setup: Setup) -> float:
    """For each of the trainings of a pack as large as a study's."""
    trials = trials_of(method, trials_that_fit(setup, ROWS, CLASSES))
    return min(seconds_for(method, rows, trials, setup) for _ in range(2)) / len(trials)


def _per_step(packed: float, setup: Setup) -> float:
    """Milliseconds of a training and step."""
    return 1000 * packed / setup.recipe.steps


def eager(*arguments: str | Path) -> dict[str, float]:
    found: dict[str, float] = json.loads(subprocess.check_output([sys.executable, SCRIPT, *arguments], text=True))
    return found


def value(method: LossMethod, setup: Setup) -> tuple[float, torch.Tensor]:
    """The loss at a late step that follows the first, or the length of a direction; and the parameters. Methods that
    look at some of the rows look at all of them."""
    (trial,) = trials_of(method, 1)
    drawn = {"sample": COMPARED_ROWS} if "sample" in trial.hparams else {}
    trial = Trial(0, {**trial.hparams, **drawn}, 0, 0)
    training = Training(method, {0: rows_of(method.tasks[0], COMPARED_ROWS)}, [trial], Trainer(setup))
    direction = training.direction(0)
    if type(method).direction is LossMethod.direction:
        direction = method.loss(training.rows(LATE), training.hp)
    return float(direction.detach().norm()), training.parameters.detach()[0]


def same_losses(setup: Setup, folder: Path) -> set[str]:
    """The methods whose eager loss was found to be that of the packs."""
    compared = {
        name: value(method, setup)
        for name, method in loss_methods().items()
        if name not in (*ENGINE_ONLY, *DRAWN, *STAGES)
    }
    given = folder / "parameters.pt"
    torch.save({"rows": COMPARED_ROWS, "parameters": {name: own for name, (_, own) in compared.items()}}, given)
    theirs = eager("value", setup.model.name, str(setup.recipe.steps), given)
    for name, (ours, _) in compared.items():
        assert theirs[name] == pytest.approx(ours, rel=CLOSE), name
    return set(compared)


@pytest.mark.parametrize("model", [Linear(), Mlp(width=(20, 10))], ids=["linear", "mlp 20-10"])
def test_packs_against_eager_trainings(model: Model, report: Callable[[str], None], tmp_path: Path) -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    setup = Setup(model, Recipe(steps=STEPS[model.name]))
    checked = same_losses(setup, tmp_path)
    rivals = [name for name in loss_methods() if name not in ENGINE_ONLY]
    theirs = eager("time", model.name, str(setup.recipe.steps), str(ALONE), *rivals)
    least_mean, least_each = FLOORS[model.name]
    ratios: dict[str, float] = {}
    lines = [
        f"{model.name}: ms of CPU time a training and step in packs of {trials_that_fit(setup, ROWS, CLASSES)}, "
        "and how many times quicker that is"
    ]
    lines.append(f"  {'':16} {'ms in packs':>11} {'against eager':>13} {'engine, one by one':>18}")
    for name, method in loss_methods().items():
        rows = rows_of(method.tasks[0])
        seconds_for(method, rows, trials_of(method, 2), setup)  # warm
        alone = sum(seconds_for(method, rows, [trial], setup) for trial in trials_of(method, ALONE)) / ALONE
        packed, their = seconds_in_pack(method, rows, setup), theirs.get(name)
        if their is not None and their < NEAR * least_each * _per_step(packed, setup):  # again, in turn
            for _ in range(AGAIN):
                packed = min(packed, seconds_in_pack(method, rows, setup))
                their = min(their, eager("time", model.name, str(setup.recipe.steps), str(ALONE), name)[name])
        step = _per_step(packed, setup)
        ratios[name] = alone / packed if their is None else their / step
        note = "same loss" if name in checked else "" if name in theirs else "rival: engine, one by one"
        lines.append(f"  {name:16} {step:11.3f} {ratios[name]:12.1f}x {alone / packed:17.1f}x  {note}")
    mean, least = math.exp(np.mean(np.log(list(ratios.values())))), min(ratios, key=lambda name: ratios[name])
    lines.append(f"  geometric mean {mean:.1f}x, least {ratios[least]:.1f}x ({least})")
    report("\n  ".join(lines))
    assert mean >= least_mean
    assert ratios[least] >= least_each
