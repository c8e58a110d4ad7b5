"""A training that pauses and goes on ends as one that never stopped: every method, to the bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oodbench import Linear, LossMethod, Mlp, Recipe
from oodbench.engine.checkpoint import Checkpoint
from oodbench.engine.data import TrainingRows
from oodbench.engine.models import Model
from oodbench.engine.rows import Hparams, Rows
from oodbench.engine.tensor import Tensor
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial
from oodbench.errors import TrainingFailed
from oodbench.plugin.registry import find, names
from oodbench_methods.erm import ERM
from oodbench_methods.jtt import JTT
from oodbench_methods.srm import SRM

STEPS, PAUSES = 9, (3, 4, 7)
PAUSING = [name for name in names("method") if find("method", name).pauses]
SHORT = {"explore_every": 4, "weight_steps": 5}  # so that explorers explore between the pauses


def rows_of(task: str, seed: int, rows: int = 48, features: int = 4) -> TrainingRows:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, features))
    score = x @ np.arange(1, features + 1) / features + 0.3 * rng.normal(size=rows)
    y: Any = (score > 0).astype(int) if task == "classification" else score
    return TrainingRows(x, y, task, 2, np.arange(rows) % 3, invariant=(0, 1))  # type: ignore[arg-type]


def trials_of(method: LossMethod) -> list[Trial]:
    space = method.search_space()
    hparams = {name: SHORT.get(name, dimension.default) for name, dimension in space.items()}
    return [
        Trial(number, hparams | {"learning_rate": rate}, seed, 10 * seed + number)
        for seed in (0, 1)
        for number, rate in enumerate((0.01, 0.1))
    ]


def parameters(models: Sequence[Any]) -> list[bytes]:
    return [model.parameters.tobytes() for model in models]


def go_through(method: LossMethod, train: Any, trials: list[Trial], setup: Setup) -> tuple[list[bytes], int]:
    """The parameters at the end of a training that pauses on the way, each time as bytes, and the steps it counted."""
    start, counted = None, 0
    for stop in (*PAUSES, STEPS):
        trainer = Trainer(setup, start, stop)
        fitted = method.fit_pack(train, trials, trainer)
        counted += trainer.gradient_steps
        assert trainer.paused is not None
        assert trainer.paused.step == stop
        start = Checkpoint.from_bytes(trainer.paused.to_bytes())
    return parameters(fitted), counted


def test_which_methods_pause() -> None:
    training = {name for name in names("method") if issubclass(find("method", name), LossMethod)}
    assert training - set(PAUSING) == {"eiil", "jtt", "irm_matrix"}  # several stages, or a loop of its own
    assert len(PAUSING) > 30


@pytest.mark.parametrize("batch", [0, 16], ids=["full", "batches"])
@pytest.mark.parametrize("name", PAUSING)
def test_going_on_equals_never_having_stopped(name: str, batch: int) -> None:
    method: LossMethod = find("method", name)()
    train = {seed: rows_of(method.tasks[-1], seed) for seed in (0, 1)}
    trials = trials_of(method)
    setup = Setup(Mlp(width=(5,)), Recipe(steps=STEPS, batch=batch))
    whole = Trainer(setup)
    expected = parameters(method.fit_pack(train, trials, whole))
    paused, counted = go_through(method, train, trials, setup)
    assert paused == expected
    if name not in ("dwr", "srdo"):  # the weights of rows are found again each time, and that is counted
        assert counted == whole.gradient_steps == STEPS * len(trials)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize(
    ("method", "model", "recipe"),
    [
        (SRM(), Mlp(width=(5,)), Recipe(steps=STEPS, batch=16, explore=20)),  # by a rule
        (SRM(), Linear(), Recipe(steps=STEPS, batch=16, explore=20)),
        (ERM(), Mlp(width=(5, 5), dropout=0.3), Recipe(steps=STEPS, optimizer="sgd")),
    ],
    ids=["rule", "linear rule", "dropout sgd"],
)
def test_rules_chance_and_velocities(task: str, method: LossMethod, model: Model, recipe: Recipe) -> None:
    train = {seed: rows_of(task, seed) for seed in (0, 1)}
    trials = trials_of(method)
    expected = parameters(method.fit_pack(train, trials, Trainer(Setup(model, recipe))))
    assert go_through(method, train, trials, Setup(model, recipe))[0] == expected


def test_some_trials_go_on_in_another_pack() -> None:
    train = {seed: rows_of("regression", seed) for seed in (0, 1)}
    trials, setup = trials_of(ERM()), Setup(Mlp(width=(5,)), Recipe(steps=STEPS))
    parts = []
    for part in (trials[:3], trials[3:]):
        trainer = Trainer(setup, stop=4)
        trainer.fit(ERM(), train, part)
        assert trainer.paused is not None
        parts.append(trainer.paused)
    best = [trials[3], trials[0]]
    trainer = Trainer(setup, start=Checkpoint.join(parts))
    fitted = trainer.fit(ERM(), train, best)
    assert trainer.gradient_steps == 2 * (STEPS - 4)
    expected = Trainer(setup).fit(ERM(), train, best)
    for one, other in zip(fitted, expected, strict=True):
        np.testing.assert_allclose(one.parameters, other.parameters, atol=1e-5)


class ByFunction(ERM):
    def explores_at(self, step: int, hp: Hparams) -> bool:
        return step == 0

    def explore(self, rows: Rows, hp: Hparams) -> Tensor:
        rows.explore_by(lambda rows: rows.weights)
        return rows.part().weights


class Stages(JTT):
    pauses = True


@pytest.mark.parametrize(("method", "expected"), [(ByFunction(), "plain function"), (Stages(), "several stages")])
def test_what_cannot_pause_says_so(method: LossMethod, expected: str) -> None:
    train = {0: rows_of("classification", 0)}
    trials = [replace(trial, seed=0) for trial in trials_of(method)[:1]]
    with pytest.raises(TrainingFailed, match=expected):
        method.fit_pack(train, trials, Trainer(Setup(Linear(), Recipe(steps=6)), stop=3))
