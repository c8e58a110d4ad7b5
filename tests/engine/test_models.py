"""Model families: one forward pass for training and evaluation, whatever stands in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from oodbench import Hparams, LossMethod, Mlp, Recipe, Rows, Setup, Tensor, TorchModel, Trainer, TrainingRows, Trial
from oodbench.engine.models import Model
from oodbench.errors import TrainingFailed
from oodbench.settings.fields import setting
from oodbench_methods.erm import ERM
from oodbench_methods.hrm import HRM
from oodbench_methods.irm import IRM


@dataclass(frozen=True)
class Sine(Mlp):
    """What a dataset may bring: an activation of its own."""

    name = "sine"

    def represent(self, pieces: Sequence[Tensor], columns: Tensor, chance: Any = None) -> Tensor:
        seeds, width, rows = columns.shape
        return pieces[0].reshape(seeds, -1, width).bmm(columns).sin().view(len(pieces[0]), -1, rows)


@dataclass(frozen=True)
class Own(TorchModel):
    name = "own"
    wide: int = setting(6, "hidden units")

    def make(self, features: int, outputs: int) -> torch.nn.Module:
        first = torch.nn.Linear(features, self.wide)
        return torch.nn.Sequential(first, torch.nn.Tanh(), torch.nn.Linear(self.wide, outputs))


FAMILIES: list[Model] = [
    Sine(width=(6,)),
    Mlp(width=(6, 6), activation="gelu", norm=True, residual=True),
    Mlp(width=(6, 6), activation="tanh"),
    Mlp(width=(6, 4), dropout=0.3),
    Own(),
]


def rows_of(seed: int, task: Any) -> TrainingRows:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(80, 3))
    y = x[:, 0] - x[:, 1]
    return TrainingRows(x, y if task == "regression" else np.digitize(y, [-1, 1]), task, 3, np.arange(80) % 2)


def trials_of(method: LossMethod) -> list[Trial]:
    defaults = {name: dimension.default for name, dimension in method.search_space().items()}
    return [
        Trial(number, defaults | {"learning_rate": 0.01 * (number + 1)}, seed, 10 * seed + number)
        for seed in (0, 1)
        for number in (0, 1)
    ]


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("model", FAMILIES, ids=str)
def test_a_trained_model_is_evaluated_as_it_was_trained(model: Model, task: Any) -> None:
    seen: dict[str, Tensor] = {}

    class Looks(ERM):
        def direction(self, rows: Rows, hp: Hparams) -> Tensor:
            seen["outputs"] = rows.at(rows.parameters.detach()).outputs  # without dropout
            return torch.zeros_like(rows.parameters)

    data = {seed: rows_of(seed, task) for seed in (0, 1)}
    fitted = Trainer(Setup(model, Recipe(steps=1))).fit(Looks(), data, trials_of(ERM()))
    for number, each in enumerate(fitted):
        np.testing.assert_allclose(each.forward(data[number // 2].x), seen["outputs"][number], atol=1e-5)


@pytest.mark.parametrize("model", FAMILIES, ids=str)
def test_alone_or_in_a_pack_and_under_another_loss(model: Model) -> None:
    data = {seed: rows_of(seed, "regression") for seed in (0, 1)}
    for method in (ERM(), IRM()):
        setup = Setup(model, Recipe(steps=20, batch=32))
        packed = Trainer(setup).fit(method, data, trials_of(method))
        (alone,) = Trainer(setup).fit(method, data, trials_of(method)[3:])
        np.testing.assert_allclose(packed[3].parameters, alone.parameters, atol=1e-4)
        assert not np.allclose(packed[2].parameters, packed[3].parameters)


def test_a_module_starts_from_its_own_first_parameters_and_learns() -> None:
    data = {seed: rows_of(seed, "regression") for seed in (0, 1)}
    fitted = Trainer(Setup(Own(), Recipe(steps=400))).fit(ERM(), data, trials_of(ERM()))
    for number, each in enumerate(fitted):
        rows = data[number // 2]
        assert np.mean((each.predict(rows.x) - rows.y) ** 2) < 0.05


def test_what_a_module_cannot_do_is_said() -> None:
    @dataclass(frozen=True)
    class Drops(Own):
        def make(self, features: int, outputs: int) -> torch.nn.Module:
            return torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(features, outputs))

    @dataclass(frozen=True)
    class Flat(Own):
        def make(self, features: int, outputs: int) -> torch.nn.Module:
            return torch.nn.Sequential(torch.nn.Linear(features, 4))

    data = {seed: rows_of(seed, "regression") for seed in (0, 1)}
    with pytest.raises(TrainingFailed, match="cannot train in packs: .*no dropout"):
        Trainer(Setup(Drops(), Recipe(steps=1))).fit(ERM(), data, trials_of(ERM()))
    with pytest.raises(TrainingFailed, match=r"with 1 outputs, not \(80, 4\)"):
        Trainer(Setup(Flat(), Recipe(steps=1))).fit(ERM(), data, trials_of(ERM()))
    with pytest.raises(TrainingFailed, match="gates before the first layer: use the model linear or mlp"):
        Trainer(Setup(Own(), Recipe(steps=1))).fit(HRM(), data, trials_of(HRM()))
