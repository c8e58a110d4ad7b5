"""IRM, EIIL and SRM on problems whose answer is known: they drop the spurious feature, ERM does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from oodbench import Hparams, Linear, LossMethod, Mlp, Recipe, Rows, TrainingRows, check_method
from oodbench.engine.fitted import FittedModel
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial
from oodbench.kit import fit_references
from oodbench_methods.eiil import EIIL, infer_environments
from oodbench_methods.erm import ERM
from oodbench_methods.irm import IRM
from oodbench_methods.srm import OBJECTIVES, SRM
from step import step_of


@pytest.mark.parametrize("method", [IRM, EIIL, SRM])
def test_conforms(method: type[LossMethod]) -> None:
    check_method(method)


def spurious_rows(seed: int = 0, labelled: bool = False) -> TrainingRows:
    """y = cause + noise everywhere; spurious = y + noise for nine rows in ten, -y + noise for the tenth."""
    rng = np.random.default_rng(seed)
    rows = 2000
    minority = np.arange(rows) < rows // 10
    cause = rng.normal(size=rows)
    y = cause + rng.normal(size=rows)
    spurious = np.where(minority, -1, 1) * y + 0.5 * rng.normal(size=rows)
    environment = minority.astype(np.int64) if labelled else None
    return TrainingRows(np.column_stack([cause, spurious]), y, "regression", 2, environment)


def train(method: LossMethod, rows: TrainingRows, setup: Setup | None = None, **hparams: Any) -> FittedModel:
    values = {name: dimension.default for name, dimension in method.search_space().items()} | hparams
    setup = setup or Setup(Linear(intercept=False), Recipe(steps=1500))
    (fitted,) = method.fit_pack({0: rows}, [Trial(0, values, 0, 1)], Trainer(setup))
    assert isinstance(fitted, FittedModel)
    return fitted


def spurious_share(fitted: FittedModel) -> float:
    cause, spurious = fitted.parameters
    return float(abs(spurious) / abs(cause))


def test_erm_follows_the_spurious_feature() -> None:
    assert spurious_share(train(ERM(), spurious_rows())) > 0.8


@pytest.mark.parametrize("risk", ["pooled", "averaged"])
def test_irm_drops_it(risk: str) -> None:
    assert spurious_share(train(IRM(), spurious_rows(labelled=True), risk=risk, penalty=100.0)) < 0.3


def test_eiil_drops_it_without_labels() -> None:
    assert spurious_share(train(EIIL(), spurious_rows(), penalty=10.0)) < 0.5


def test_srm_drops_it_without_labels() -> None:
    assert spurious_share(train(SRM(), spurious_rows(), penalty=1.0)) < 0.3


def test_irms_penalty_waits() -> None:
    rows = spurious_rows(labelled=True)
    never = train(IRM(), rows, anneal=100_000, penalty=100.0)
    np.testing.assert_allclose(never.parameters, train(ERM(), rows).parameters, atol=1e-3)


def test_eiils_split_by_sign_is_what_gradient_ascent_finds() -> None:
    """Soft assignments by 3,000 steps of Adam on the squared slopes of both environments, summed over rows."""
    rows = spurious_rows()
    trainer = Trainer(Setup(Linear(intercept=False), Recipe(steps=1500)))
    reference = fit_references(ERM(), {0: rows}, [Trial(0, {}, 0, 1)], trainer)[0]
    by_sign = infer_environments(reference, rows)
    outputs, y = torch.tensor(reference.predict(rows.x)), torch.tensor(rows.y)
    slopes = 2 * (outputs - y) * outputs
    logits = torch.zeros(len(rows), dtype=torch.float64)
    logits += 0.01 * torch.randn(len(rows), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    logits.requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=0.05)
    for _ in range(3000):
        optimizer.zero_grad()
        share = logits.sigmoid()
        gain = (share * slopes).mean().square() + ((1 - share) * slopes).mean().square()
        (-gain).backward()
        optimizer.step()
    by_gradient = (logits.detach() > 0).numpy()
    agree = np.mean(by_gradient == by_sign.astype(bool))
    assert max(agree, 1 - agree) > 0.99


def objective_of(name: str, w: np.ndarray, x: np.ndarray, y: np.ndarray, q: np.ndarray, penalty: float) -> float:
    """The objectives of a linear model by their formulas."""
    residual = x @ w - y
    grad_all, grad_part = 2 * x.T @ residual / len(y), 2 * x.T @ (q * residual)
    risk_all, risk_part = np.mean(residual**2), q @ residual**2
    if name == "released":
        return float((risk_all + risk_part) / 2 + penalty * np.mean((grad_all - grad_part) ** 2))
    sign = 1 if name == "printed" else -1
    return float(risk_all + sign * penalty * (grad_all - grad_part) @ grad_part)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_srms_objectives_and_their_gradients(name: str) -> None:
    rng = np.random.default_rng(3)
    x, y, w = rng.normal(size=(50, 3)), rng.normal(size=50), rng.normal(size=3)
    q = np.where(np.arange(50) < 10, 0.1, 0.0)
    x, y = x.astype(np.float32), y.astype(np.float32)  # as the engine takes them
    step = step_of(
        SRM(), TrainingRows(x, y, "regression", 2), {"objective": name, "penalty": 0.7}, parameters=[w], explored=[q]
    )
    assert np.isclose(step.loss().item(), objective_of(name, w, x, y, q, 0.7))
    gradient = step.direction()
    for i, small in enumerate(1e-6 * np.eye(3)):
        up, down = (objective_of(name, w + sign * small, x, y, q, 0.7) for sign in (1, -1))
        assert np.isclose(gradient[0, i].item(), (up - down) / 2e-6, rtol=1e-5)


def test_srm_explores_on_schedule() -> None:
    class Counts(SRM):
        steps: list[int] = []

        def explore(self, rows: Rows, hp: Hparams) -> torch.Tensor:
            self.steps.append(rows.step)
            return super().explore(rows, hp)

    setup = Setup(Mlp(width=(6,)), Recipe(steps=100, batch=64))
    train(Counts(), spurious_rows(), setup, explore_from=30, explore_every=25)
    assert Counts.steps == [30, 55, 80]


@pytest.mark.parametrize("method", [IRM, EIIL, SRM])
def test_models_of_every_kind_in_minibatches(method: type[LossMethod]) -> None:
    labelled = "environments" in method.needs
    fitted = train(method(), spurious_rows(labelled=labelled), Setup(Mlp(width=(8, 4)), Recipe(steps=60, batch=128)))
    assert np.isfinite(fitted.parameters).all()


def test_srms_released_schedule_drops_it_too() -> None:
    preset = SRM.presets["released"]
    assert isinstance(preset.model, Mlp)
    setup = Setup(preset.model, Recipe(**preset.recipe))
    rows, reversed_rows = spurious_rows(), spurious_rows(1)
    flipped = reversed_rows.x * [1, -1]  # for nine rows in ten the spurious feature now points the other way
    errors = {
        method: np.mean((train(method(), rows, setup, **hparams).predict(flipped) - reversed_rows.y) ** 2)
        for method, hparams in ((SRM, dict(preset.fix)), (ERM, {"learning_rate": 1e-3}))
    }
    assert errors[SRM] < 0.6 * errors[ERM]


def test_srms_noise_scales_are_an_option() -> None:
    assert np.isfinite(train(SRM(), spurious_rows(), noise="scales").parameters).all()
