"""What a loss method may use beside losses, each in packs: a trial gives the same alone or with others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from oodbench import (
    Hparams,
    Linear,
    LossMethod,
    Mlp,
    Network,
    Recipe,
    Rows,
    Setup,
    Shape,
    Tensor,
    Trainer,
    TrainingRows,
    Trial,
)
from oodbench.engine.models import Model
from oodbench.errors import TrainingFailed
from oodbench_methods.erm import ERM
from step import step_of

MODELS = [Linear(), Mlp(width=(6, 4))]


def rows_of(seed: int, rows: int = 90, task: Any = "regression") -> TrainingRows:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    y = x[:, 0] - x[:, 1] + 0.1 * rng.normal(size=rows)
    return TrainingRows(x, y if task == "regression" else (y > 0).astype(np.int64), task, 2, np.arange(rows) % 3)


def trial(configuration: int = 0, seed: int = 0) -> Trial:
    rate = 0.01 * (configuration + 1)
    return Trial(configuration, {"learning_rate": rate, "weight_decay": 0.0}, seed, 100 * seed + configuration)


class Remembers(LossMethod):
    """Group DRO with a fixed step."""

    def start(self, rows: Rows, hp: Hparams) -> Mapping[str, Tensor]:
        return {"q": torch.full((len(rows.y), 3), 1 / 3)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        risks = rows.risk(rows.environments)
        q = rows.state.q * (0.1 * risks).exp()
        rows.state.q = q / q.sum(-1, keepdim=True)
        worst: Tensor = (rows.state.q * risks).sum(-1)
        return worst


class Draws(LossMethod):
    """All kinds of chance, another forward pass and a sample."""

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        partner, share = rows.permutation(), rows.beta(hp.learning_rate * 50).unsqueeze(-1)
        x = rows.x + 0.1 * rows.normal(*rows.x.shape[1:])
        others = x.gather(2, partner.unsqueeze(1).expand_as(x))
        mixed = rows.forward(share.unsqueeze(-1) * x + (1 - share.unsqueeze(-1)) * others)
        few = rows.sample(20)
        of_mixed = share * mixed.losses + (1 - share) * mixed.losses_for(rows.y.gather(1, partner))
        return of_mixed.mean(-1) + rows.uniform() * few.risk() + few.learned.square().mean((1, 2))


class Combines(LossMethod):
    def direction(self, rows: Rows, hp: Hparams) -> Tensor:
        gradients = rows.gradients(rows.risk(rows.environments))
        return gradients.mean(1) * (gradients.sign().mean(1).abs() > 0.9)


class Owns(LossMethod):
    def networks(self, shape: Shape, hp: Hparams) -> Mapping[str, Network]:
        return {"domain": Network(Mlp(width=(5,)), shape.units, shape.environments)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        guess = rows.network("domain", rows.learned)
        return rows.risk() + rows.recipe.row_losses(guess, rows.environment).mean(-1)


@pytest.mark.parametrize("batch", [0, 32])
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("method", [Remembers, Draws, Combines, Owns])
def test_alone_or_in_a_pack(method: type[LossMethod], model: Model, batch: int) -> None:
    data = {0: rows_of(0), 1: rows_of(1)}
    setup = Setup(model, Recipe(steps=25, batch=batch))
    trials = [trial(0), trial(1), trial(0, 1), trial(1, 1)]
    instance = method()
    packed = Trainer(setup).fit(instance, data, trials)
    again = Trainer(setup).fit(instance, data, trials)  # nothing is left on the instance
    for one, fitted, twice in zip(trials, packed, again, strict=True):
        (alone,) = Trainer(setup).fit(method(), data, [one])
        np.testing.assert_allclose(fitted.parameters, alone.parameters, atol=1e-4)
        np.testing.assert_array_equal(fitted.parameters, twice.parameters)


def test_weights_of_rows_are_as_good_as_repeated_rows() -> None:
    once = rows_of(0)
    weights = np.array([1.0, 2.0, 0.0] * 30)
    repeated = np.repeat(np.arange(90), weights.astype(int))
    twice = replace(once, x=once.x[repeated], y=once.y[repeated], environment=np.asarray(once.environment)[repeated])
    setup = Setup(Linear(), Recipe(steps=50))
    (weighted,) = Trainer(setup).fit(ERM(), {0: replace(once, weights=weights)}, [trial()])
    (plain,) = Trainer(setup).fit(ERM(), {0: twice}, [trial()])
    np.testing.assert_allclose(weighted.parameters, plain.parameters, atol=1e-5)


def test_every_trial_may_have_rows_of_its_own() -> None:
    data = rows_of(0)
    own = [replace(data, weights=(np.arange(90) % 2 == part).astype(float)) for part in (0, 1)]
    setup = Setup(Linear(), Recipe(steps=30, batch=32))
    packed = Trainer(setup).fit(ERM(), own, [trial(0), trial(1)])
    for part in (0, 1):
        (alone,) = Trainer(setup).fit(ERM(), [own[part]], [trial(part)])
        np.testing.assert_allclose(packed[part].parameters, alone.parameters, atol=1e-5)


@pytest.mark.parametrize("weights", [[-1.0, 2.0], [np.nan, 1.0], [0.0, 0.0], [1.0]])
def test_bad_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(TrainingFailed, match="weights of training rows"):
        TrainingRows(np.zeros((2, 1)), np.zeros(2), "regression", 2, weights=np.array(weights))


def bad(**hooks: Any) -> LossMethod:
    method: LossMethod = type("Bad", (ERM,), hooks)()
    return method


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (bad(start=lambda self, rows, hp: {"q": 1.0}), "state 'q' must be a tensor"),
        (bad(start=lambda self, rows, hp: {"q": torch.zeros(5)}), r"one entry per trial, shape \(2, ...\)"),
        (bad(start=lambda self, rows, hp: None), "start must return a dict"),
        (bad(direction=lambda self, rows, hp: rows.losses), "direction must return a tensor"),
        (bad(direction=lambda self, rows, hp: None), "direction must return .* not NoneType"),
        (
            bad(explores_at=lambda self, step, hp: True, explore=lambda self, rows, hp: rows.losses[:, :5]),
            "explore must return weights",
        ),
        (bad(loss=lambda self, rows, hp: rows.forward(rows.x[:, :2]).risk()), "rows.forward takes x"),
        (bad(loss=lambda self, rows, hp: rows.network("a", rows.learned).sum((1, 2))), "there is no network 'a'"),
        (
            bad(
                networks=lambda self, shape, hp: {"a": Network(Linear(), shape.features, 1)},
                loss=lambda self, rows, hp: rows.risk() + rows.network("a", rows.x).sum((1, 2)),
            ),
            "that a linear model cannot change: use rows.learned",
        ),
    ],
)
def test_hooks_that_return_the_wrong_thing_are_explained(method: LossMethod, words: str) -> None:
    with pytest.raises(TrainingFailed, match=words):
        Trainer(Setup(Linear(), Recipe(steps=1))).fit(method, {0: rows_of(0)}, [trial(0), trial(1)])


def test_state_keeps_its_shape_and_its_names() -> None:
    rows = step_of(Remembers(), rows_of(0), {}, {}).rows
    with pytest.raises(TrainingFailed, match=r"to shape \(2, 4\); start made it \(2, 3\)"):
        rows.state.q = torch.zeros(2, 4)
    with pytest.raises(AttributeError, match="no state 'p': return it from start"):
        rows.state.p = torch.zeros(2)


def test_gradients_of_several_risks_are_those_of_each() -> None:
    rows = step_of(ERM(), rows_of(0), {}, {}, model=Mlp(width=(4,))).rows
    risks = rows.risk(rows.environments)
    together = rows.gradients(risks)
    for place in range(3):
        torch.testing.assert_close(together[:, place], rows.gradient(risks[:, place]))


def test_rows_under_other_parameters_and_with_other_inputs() -> None:
    rows = step_of(ERM(), rows_of(0), {}, {}, model=Mlp(width=(4,))).rows
    torch.testing.assert_close(rows.at(rows.parameters).losses, rows.losses)
    torch.testing.assert_close(rows.forward(rows.x).outputs, rows.outputs)
    assert not torch.allclose(rows.at(2 * rows.parameters).losses, rows.losses)
    places = torch.tensor([[3, 1], [5, 7]])
    few = rows.take(places)
    torch.testing.assert_close(few.losses, rows.losses.gather(1, places))
    assert few.environments.sum(-1).tolist() == [[1, 1, 0], [0, 1, 1]]  # of the rows 3 and 1, 5 and 7
    torch.testing.assert_close(few.x[1, :, 0], rows.x[1, :, 5])


def test_a_plain_optimizer_steps_by_the_direction() -> None:
    class Moves(ERM):
        optimizer = "plain"

        def direction(self, rows: Rows, hp: Hparams) -> Tensor:
            return torch.ones_like(rows.parameters)

    (fitted,) = Trainer(Setup(Linear(), Recipe(steps=3))).fit(Moves(), {0: rows_of(0)}, [trial()])
    (start,) = Trainer(Setup(Linear(), Recipe(steps=1))).fit(Moves(), {0: rows_of(0)}, [trial()])
    np.testing.assert_allclose(fitted.parameters, start.parameters - 2, atol=1e-5)
