"""Embeddings of categorical columns: torch's own, trained in packs, multiplied into what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from oodbench import Dataset, Environment, LossMethod, Mlp, Network, Recipe, Setup, Trainer, TrainingRows, Trial
from oodbench.engine.embeddings import Embedded, with_embeddings
from oodbench.engine.fitted import FittedModel
from oodbench.engine.models import Model
from oodbench.engine.trainer import Training
from oodbench.errors import InvalidSetting, TrainingFailed
from oodbench.plugin.dataset import fault_in
from oodbench.study.plan import Request, resolve
from oodbench.study.spec import StudyOptions
from oodbench_methods.erm import ERM
from oodbench_methods.hrm import HRM
from oodbench_methods.irm import IRM
from oodbench_methods.oracle import Oracle

LEVELS = (4, 3)
CATEGORIES = (range(1, 5), range(6, 9))  # between numbers, and at the end
MODEL = Mlp(width=(6, 5), embed=2)


def codes_and_table(rng: np.random.Generator, rows: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Levels [row, category], -1 where a row has none that was learnt, and the columns."""
    codes = np.column_stack([rng.integers(-1, levels, rows) for levels in LEVELS])
    blocks = [(codes[:, [at]] == np.arange(levels)).astype(float) for at, levels in enumerate(LEVELS)]
    numbers = rng.normal(size=(rows, 2))
    return codes, np.hstack([numbers[:, :1], blocks[0], numbers[:, 1:], blocks[1]])


def rows_of(seed: int) -> TrainingRows:
    codes, x = codes_and_table(np.random.default_rng(seed), 90)
    y = x[:, 0] + np.array([1.0, -2.0, 0.5, 0.0, 0.0])[codes[:, 0]]
    return TrainingRows(x, y, "regression", 2, np.arange(90) % 2, categories=CATEGORIES)


def trials_of(method: LossMethod) -> list[Trial]:
    defaults = {name: dimension.default for name, dimension in method.search_space().items()}
    return [Trial(0, defaults, seed, 10 * seed + number) for seed in (0, 1) for number in (1, 2)]


def test_it_is_the_embedding_of_torch_before_a_perceptron() -> None:
    torch.manual_seed(0)
    codes, x = codes_and_table(np.random.default_rng(0), 50)
    tables = [torch.nn.Embedding(levels, MODEL.embed) for levels in LEVELS]
    layers = [torch.nn.Linear(2 + 2 * MODEL.embed, 6), torch.nn.Linear(6, 5), torch.nn.Linear(5, 3)]
    vectors = [
        torch.where(torch.tensor(codes[:, [at]]) < 0, 0.0, table(torch.tensor(codes[:, at]).clamp(0)))
        for at, table in enumerate(tables)
    ]
    number = torch.tensor(x, dtype=torch.float32)
    first = torch.cat([number[:, :1], vectors[0], number[:, 5:6], vectors[1]], 1)
    theirs = layers[2](layers[1](layers[0](first).relu()).relu())

    model = with_embeddings(MODEL, CATEGORIES)
    joined = torch.cat([layers[0].weight, layers[0].bias[:, None]], 1)  # a unit's bias is behind its weights
    later = [tensor.flatten() for layer in layers[1:] for tensor in (layer.weight, layer.bias)]
    parameters = torch.cat([joined.flatten(), *later, *(table.weight.T.flatten() for table in tables)])[None].detach()
    assert parameters.shape[1] == model.parameter_count(9, 3)
    pieces = model.pieces(parameters, 9, 3)
    ours = model.read_out(pieces, model.represent(pieces, model.columns(number.T[None])), 3)[0].T
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-6)

    plain, multiplied = model.finish(parameters, 9, 3)
    kept = FittedModel(plain, Recipe(), 3, False, multiplied[0].numpy())
    np.testing.assert_allclose(kept.outputs(x), theirs.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("model", [MODEL, replace(MODEL, activation="tanh", norm=True, dropout=0.2, init=0.3)])
@pytest.mark.parametrize("method", [ERM(), IRM(), HRM()])  # the last has gates before the first layer
def test_alone_or_in_a_pack(method: LossMethod, model: Model) -> None:
    trainer, train = Trainer(Setup(model, Recipe(steps=20))), {seed: rows_of(seed) for seed in (0, 1)}
    trials = trials_of(method)
    packed = method.fit_pack(train, trials, trainer)
    _, x = codes_and_table(np.random.default_rng(9), 70)
    for trial, fitted in zip(trials, packed, strict=True):
        (alone,) = method.fit_pack({trial.seed: train[trial.seed]}, [trial], trainer)
        np.testing.assert_allclose(fitted.predict(x), alone.predict(x), rtol=1e-3, atol=1e-4)


def test_what_is_kept_is_what_was_trained_and_loads_again() -> None:
    train, trials = {seed: rows_of(seed) for seed in (0, 1)}, trials_of(ERM())
    training = Training(ERM(), train, trials, Trainer(Setup(MODEL, Recipe(steps=1))))
    for step in range(30):
        training.step(step)
    outputs = training.rows(30).outputs.detach().numpy()  # [trial, output, row]
    for trial, fitted, trained in zip(trials, training.models(), outputs, strict=True):
        assert fitted.model == Mlp(width=(6, 5))
        np.testing.assert_allclose(fitted.forward(train[trial.seed].x), trained, rtol=1e-4, atol=1e-5)
        again = FittedModel.restore(fitted.arrays(), fitted.about(), Mlp)
        assert np.array_equal(again.predict(train[0].x), fitted.predict(train[0].x))


def test_it_learns_from_levels_and_starts_as_torch_does() -> None:
    trainer, train = Trainer(Setup(MODEL, Recipe(steps=400))), {seed: rows_of(seed) for seed in (0, 1)}
    for trial, fitted in zip(trials_of(ERM()), ERM().fit_pack(train, trials_of(ERM()), trainer), strict=True):
        rows = train[trial.seed]
        assert np.mean((fitted.predict(rows.x) - rows.y) ** 2) < 0.1 * np.var(rows.y)
    large = with_embeddings(Mlp(width=(2,), embed=100), (range(100),))
    tables = large.initial(torch.rand(1, large.parameter_count(100, 1)), 100, 1)[0, -10_000:]
    assert abs(float(tables.mean())) < 0.05
    assert float(tables.std()) == pytest.approx(1, abs=0.05)


@dataclass(frozen=True)
class Told(Dataset):
    """A dataset of one seed's rows."""

    task = "regression"
    declared: Any = CATEGORIES

    @property
    def categories(self) -> tuple[range, ...]:
        return tuple(self.declared)

    def train(self, seed: int) -> list[Environment]:
        return [Environment("all", rows_of(seed).x, rows_of(seed).y)]

    validation = test = train


@pytest.mark.parametrize("declared", [(range(4, 6), range(5, 9)), (range(7, 10),), (range(6, 9), range(1, 5))])
def test_categories_that_cannot_be_are_a_fault_of_the_dataset(declared: tuple[range, ...]) -> None:
    assert fault_in("training", Told().train(0), Told()) is None
    fault = fault_in("training", Told().train(0), Told(declared))
    assert fault == "categories must be ranges of the 9 columns, in their order and apart"


def test_without_categories_embeddings_are_refused_in_a_line() -> None:
    options: Mapping[str, Any] = {"model": "mlp", "model_settings": {"embed": 8}}
    with pytest.raises(InvalidSetting, match=r"embed=8 is for datasets .*; this one has none.\nLeave out embed."):
        resolve(Request(["erm"], ["selection_bias"], StudyOptions(**options)))
    with pytest.raises(ValueError, match="init and embed must be 0 or more"):
        Mlp(embed=-1)
    with pytest.raises(TrainingFailed, match="embed is for the model of a study"):
        _ = Network(MODEL, 9, 1).size


def test_a_part_of_the_columns_has_no_categories() -> None:
    rows = replace(rows_of(0), invariant=(0, 2, 3))
    with pytest.raises(InvalidSetting, match="this one has none"):
        Oracle().fit_pack({0: rows}, trials_of(Oracle())[:2], Trainer(Setup(MODEL, Recipe(steps=2))))


def test_without_embed_it_is_the_model_itself() -> None:
    assert with_embeddings(Mlp(), CATEGORIES) == Mlp()
    assert isinstance(with_embeddings(MODEL, CATEGORIES), Embedded)
