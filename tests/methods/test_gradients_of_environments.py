"""DANN, Fish, Fishr and the masks: their steps against formulas in numpy, and problems whose answer is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from formulas import Array, cross_entropies, fitted, flipped_rows, random_rows, risks, slope
from oodbench import Linear, LossMethod, Method, Mlp, Recipe, Setup, TrainingRows, check_method
from oodbench.errors import InvalidSetting
from oodbench.kit import reverse_gradient
from oodbench_methods.and_mask import AndMask
from oodbench_methods.dann import DANN
from oodbench_methods.erm import ERM
from oodbench_methods.fish import Fish, in_random_order
from oodbench_methods.fishr import Fishr
from oodbench_methods.icp import ICP
from oodbench_methods.lisa import LISA
from oodbench_methods.sand_mask import SandMask
from step import step_of


@pytest.mark.parametrize("method", [DANN, Fish, Fishr, AndMask, SandMask])
def test_conforms(method: type[Method]) -> None:
    check_method(method)


@pytest.mark.parametrize("method", [DANN, Fish, Fishr, AndMask, SandMask, LISA, ICP])
def test_one_training_environment_is_refused(method: type[Method]) -> None:
    rows = random_rows(0, environments=1)
    with pytest.raises(InvalidSetting, match="compares training environments, and there is one"):
        method().check(rows, {})
    method().check(random_rows(0), {})


def test_a_reversed_gradient_leaves_the_values_alone() -> None:
    values = torch.tensor([0.1, 1e8, -3.0], requires_grad=True)
    reversed_ = reverse_gradient(values)
    assert torch.equal(reversed_, values)
    (gradient,) = torch.autograd.grad((reversed_ * torch.tensor([1.0, 2.0, 3.0])).sum(), values)
    assert gradient.tolist() == [-1.0, -2.0, -3.0]


@pytest.mark.parametrize("hidden", [False, True])
def test_dann_turns_the_model_against_the_discriminator(hidden: bool) -> None:
    """w -= d(R - penalty D), discriminator -= penalty dD: one step of the authors' algorithm."""
    rows = random_rows(2)
    environment = rows.environment
    assert environment is not None
    rng = np.random.default_rng(5)
    size, units = (4 * 4 + 5, 4) if hidden else (3, 1)
    w, v = rng.normal(size=size), rng.normal(size=6 * (units + 1) + 3 * 7)
    model = Mlp(width=(4,)) if hidden else Linear(intercept=False)
    step = step_of(DANN(), rows, {"penalty": 0.7, "width": 6}, parameters=[np.concatenate([w, v])], model=model)
    everyone = np.zeros(len(rows))
    for e in range(3):
        everyone[environment == e] = 1 / 3 / np.sum(environment == e)

    def learned(w: Array) -> tuple[Array, Array]:
        if not hidden:
            return rows.x @ w, (rows.x @ w)[None]
        seen = np.maximum(w[:16].reshape(4, 4) @ np.vstack([rows.x.T, np.ones(len(rows))]), 0)
        return w[16:20] @ seen + w[20], seen

    def risk(w: Array) -> float:
        return float(everyone @ (learned(w)[0] - rows.y) ** 2)

    def surprise(w: Array, v: Array) -> float:
        first, second = v[: 6 * (units + 1)].reshape(6, units + 1), v[6 * (units + 1) :]
        inside = np.maximum(first @ np.vstack([learned(w)[1], np.ones(len(rows))]), 0)
        guesses = second[:18].reshape(3, 6) @ inside + second[18:, None]
        return float(everyone @ cross_entropies(guesses, environment))

    assert np.isclose(step.loss().item(), risk(w) + 0.7 * surprise(w, v), rtol=1e-6)
    of_model = slope(risk, w) - 0.7 * slope(lambda w: surprise(w, v), w)
    of_discriminator = 0.7 * slope(lambda v: surprise(w, v), v)
    expected = np.concatenate([of_model, of_discriminator])
    np.testing.assert_allclose(step.direction()[0].numpy(), expected, atol=1e-5)


def test_dann_hides_the_environment() -> None:
    """x1 says which environment a row is from, and y differs a little between them."""
    rng = np.random.default_rng(0)
    environment = np.arange(400) % 2
    x = np.column_stack([rng.normal(size=400), environment - 0.5 + 0.1 * rng.normal(size=400)])
    rows = TrainingRows(x, x[:, 0] + environment + 0.3 * rng.normal(size=400), "regression", 2, environment)

    def gap(method: LossMethod, **hparams: Any) -> float:
        said = fitted(method, rows, **hparams).predict(x)
        return abs(float(said[environment == 0].mean() - said[environment == 1].mean()))

    assert gap(DANN(), penalty=10.0) < 0.5 * gap(ERM())


def risk_slope(w: Array, rows: TrainingRows, environment: int) -> Array:
    return slope(lambda w: float(risks(w, rows)[environment]), w)


def test_fish_takes_a_share_of_the_way_through_all_environments() -> None:
    rows = random_rows(1)
    w = np.array([0.5, -1.0, 2.0])
    step = step_of(Fish(), rows, {"learning_rate": 0.1, "meta_step": 0.5}, parameters=[w])
    draws = step_of(Fish(), rows, {"learning_rate": 0.1, "meta_step": 0.5}, parameters=[w])
    order = draws.rows.uniform(3).argsort(-1)[0].tolist()
    inner = w
    for e in order:
        inner = inner - 0.1 * risk_slope(inner, rows, e)
    np.testing.assert_allclose(step.direction()[0].numpy(), 0.5 * (w - inner), atol=1e-6)


def test_fish_visits_the_environments_in_an_order_of_each_trials_own() -> None:
    rows = step_of(Fish(), random_rows(1), *[{}] * 30).rows
    orders = {tuple(in_random_order(rows)[trial].tolist()) for trial in range(30)}
    assert len(orders) == 6


def test_fish_finds_what_the_environments_share() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2)) * np.where(np.arange(200) % 2, 2.0, 0.5)[:, None]
    rows = TrainingRows(x, x @ [1.0, -2.0], "regression", 2, np.arange(200) % 2)
    np.testing.assert_allclose(fitted(Fish(), rows).parameters, [1.0, -2.0], atol=0.01)


def last_layer_variance(w: Array, rows: TrainingRows) -> Array:
    assert rows.environment is not None
    gradients = 2 * (rows.x @ w - rows.y)[:, None] * rows.x
    return np.stack([gradients[rows.environment == e].var(0) for e in np.unique(rows.environment)])


def test_fishr_matches_moving_averages_of_variances() -> None:
    rows = random_rows(3)
    w, before = np.array([0.5, -1.0, 0.2]), np.array([0.1, 0.3, -0.4])
    hparams = {"penalty": 20.0, "ema": 0.9, "burn_in": 0.0}
    step = step_of(Fishr(), rows, hparams, parameters=[before])
    middle = np.array([-1.0, 0.7, 0.9])
    step.at(torch.tensor(middle[None], requires_grad=True)).loss()  # what it saw is remembered
    step = step.at(torch.tensor(w[None], requires_grad=True))
    ema = float(np.float32(0.9))
    remembered = ema * last_layer_variance(before, rows) + (1 - ema) * last_layer_variance(middle, rows)

    def plainly(w: Array) -> float:
        variances = ema * remembered + (1 - ema) * last_layer_variance(w, rows)
        gaps = ((variances - variances.mean(0)) ** 2).sum(1).mean()
        return float(risks(w, rows).mean() + 20 * gaps)

    assert np.isclose(step.loss().item(), plainly(w), rtol=1e-5)
    step.rows.state.variances = torch.tensor(remembered[None]).flatten(2)
    np.testing.assert_allclose(step.direction()[0].numpy(), slope(plainly, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model", [Linear(), Mlp(width=(5,))])
def test_fishrs_closed_form_is_the_variance_of_every_rows_gradient(model: Linear | Mlp) -> None:
    rows = random_rows(4, classes=3)
    step = step_of(Fishr(), rows, model=model)
    last = 3 * 4 if isinstance(model, Linear) else 3 * 6
    each = torch.stack([step.rows.gradient(loss)[0, -last:] for loss in step.rows.losses.unbind(1)]).detach()
    environment = torch.tensor(rows.environment)
    expected = torch.stack([each[environment == e].var(0, correction=0) for e in range(3)])
    found = step.rows.state.variances[0]
    np.testing.assert_allclose(found.sum(-1).numpy(), expected.sum(-1).numpy(), rtol=1e-6)
    np.testing.assert_allclose(found.sort(-1).values.numpy(), expected.sort(-1).values.numpy(), atol=1e-9)


def test_fishrs_penalty_waits() -> None:
    step = step_of(Fishr(), random_rows(3), {"burn_in": 0.5, "penalty": 1e4}, step=999)
    assert np.isclose(step.loss().item(), step.rows.risk(step.rows.environments).mean().item())
    late = step_of(Fishr(), random_rows(3), {"burn_in": 0.5, "penalty": 1e4}, step=1000)
    assert late.loss().item() > step.loss().item()


def environment_gradients(w: Array, rows: TrainingRows) -> Array:
    return np.stack([risk_slope(w, rows, e) for e in range(3)])


@pytest.mark.parametrize("seed", range(3))
def test_and_mask_passes_what_all_agree_on(seed: int) -> None:
    rows = random_rows(seed, features=8)
    w = np.random.default_rng(seed).normal(size=8)
    step = step_of(AndMask(), rows, {"threshold": 1.0}, {"threshold": 0.6}, parameters=[w])
    gradients = environment_gradients(w, rows)
    agreement = np.abs(np.sign(gradients).mean(0))
    for direction, threshold in zip(step.direction().numpy(), (1.0, 0.6), strict=True):
        mask = agreement >= threshold
        np.testing.assert_allclose(direction, gradients.mean(0) * mask / (mask.mean() + 1e-10), atol=1e-5)


def test_full_agreement_passes_the_and_mask_at_its_default() -> None:
    """A strict comparison would let nothing pass."""
    rows = replace(random_rows(0), y=np.full(24, 9.0), x=np.ones((24, 1)))
    assert (step_of(AndMask(), rows, parameters=[[0.0]]).direction() != 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_sand_mask_is_its_formula(seed: int) -> None:
    rows = random_rows(seed, features=6)
    w = np.random.default_rng(seed).normal(size=6)
    step = step_of(SandMask(), rows, {"threshold": 0.25, "steepness": 0.5}, parameters=[w])
    gradients = environment_gradients(w, rows)
    slopes = 0.5 / gradients.var(0)
    mask = np.maximum(0, np.tanh(slopes * (np.abs(np.sign(gradients).mean(0)) - 0.25)))
    np.testing.assert_allclose(step.direction()[0].numpy(), gradients.mean(0) * mask / (mask.mean() + 1e-10), atol=1e-5)


def test_sand_mask_does_not_divide_zero_by_zero() -> None:
    """Equal environments have gradients without variance, and one column is always 0."""
    x, y = np.repeat([[1.0, 0.0], [2.0, 0.0]], 2, axis=0), np.array([1.0, 1.0, 3.0, 3.0])
    rows = TrainingRows(x, y, "regression", 2, np.array([0, 1, 0, 1]))
    hparams = [{"threshold": 1.0}, {"threshold": 0.5}, {"threshold": 0.0, "steepness": 1e5}]
    directions = step_of(SandMask(), rows, *hparams, parameters=[[0.0, 0.0]]).direction()
    assert directions.isfinite().all()
    assert (directions[0] == 0).all()
    assert (directions[1:, 0] != 0).all()
    assert (directions[:, 1] == 0).all()


@pytest.mark.parametrize("method", [AndMask, SandMask])
def test_a_coefficient_that_the_environments_disagree_on_is_not_learned(method: type[LossMethod]) -> None:
    def share(method: LossMethod) -> float:
        cause, spurious = fitted(method, flipped_rows(), weight_decay=1e-2).parameters
        return float(abs(spurious) / abs(cause))

    assert share(method()) < 0.5 * share(ERM())


def test_fishr_makes_the_gradients_vary_alike() -> None:
    """y = noise where x is 1 or -1, y = x + noise where x is normal: with as much noise in both, their gradients vary
    alike only at slope 1."""
    rng = np.random.default_rng(0)
    environment = np.arange(1000) % 2
    x = np.where(environment, rng.normal(size=1000), np.sign(rng.normal(size=1000)))
    y = environment * x + 0.5 * rng.normal(size=1000)
    rows = TrainingRows(x[:, None], y, "regression", 2, environment)
    assert abs(fitted(ERM(), rows).parameters[0] - 0.5) < 0.1
    assert abs(fitted(Fishr(), rows).parameters[0] - 1.0) < 0.2


@pytest.mark.parametrize("method", [DANN, Fish, Fishr, AndMask, SandMask])
def test_models_of_every_kind_in_minibatches(method: type[LossMethod]) -> None:
    setup = Setup(Mlp(width=(6, 4)), Recipe(steps=20, batch=64))
    assert np.isfinite(fitted(method(), flipped_rows(), setup).parameters).all()
