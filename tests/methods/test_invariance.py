"""IRM, EIIL and SRM on problems whose answer is known: they drop the spurious feature, ERM does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from oodbench import Hparams, Linear, LossMethod, Mlp, Recipe, Rows, TrainingRows, check_method
from oodbench.engine.fitted import FittedModel
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial
from oodbench.kit import factor_slopes, fit_references, infer_environments
from oodbench_methods.eiil import EIIL
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
    never, light = (train(IRM(), rows, anneal=anneal, penalty=p) for anneal, p in ((100_000, 100.0), (0, 1.0)))
    np.testing.assert_allclose(never.parameters, light.parameters, atol=1e-6)


def by_gradient(slopes: np.ndarray) -> np.ndarray:
    """Soft assignments of slopes [row, k] by Adam on the squared slopes of both environments, summed over rows."""
    of_rows = torch.tensor(slopes, dtype=torch.float64)
    logits = 0.01 * torch.randn(len(slopes), 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    logits.requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=0.05)
    for _ in range(1500):
        optimizer.zero_grad()
        share = logits.sigmoid()
        gain = (share * of_rows).mean(0).square().sum() + ((1 - share) * of_rows).mean(0).square().sum()
        (-gain).backward()
        optimizer.step()
    return (logits.detach()[:, 0] > 0).numpy()


def agreement(one: np.ndarray, other: np.ndarray) -> float:
    agree = np.mean(one.astype(bool) == other.astype(bool))
    return float(max(agree, 1 - agree))


def reference_of(rows: TrainingRows) -> FittedModel:
    trainer = Trainer(Setup(Linear(intercept=False), Recipe(steps=1000)))
    return fit_references(ERM(), {0: rows}, [Trial(0, {}, 0, 1)], trainer)[0]


def test_eiils_split_is_what_gradient_ascent_finds() -> None:
    rows = spurious_rows()
    reference = reference_of(rows)
    labels = TrainingRows(rows.x, (rows.y > 0).astype(np.int64), "classification", 2)
    classifier = reference_of(labels)
    outputs, y = torch.tensor(classifier.forward(labels.x))[None], torch.tensor(labels.y)[None]
    of_classes = classifier.recipe.row_slopes(outputs, y)[0].numpy()[:, None]
    by_factor = 2 * (reference.predict(rows.x) - rows.y)[:, None] * rows.x * reference.parameters
    for found, slopes in (
        (infer_environments(reference, rows), by_factor),
        (infer_environments(classifier, labels), of_classes),
    ):
        assert agreement(found, by_gradient(slopes)) > 0.99


def test_eiils_split_of_a_regression_by_inputs_isolates_the_minority_better() -> None:
    """Than the split by a single factor of the outputs, whose sign it is."""
    rows = spurious_rows(labelled=True)
    reference = reference_of(rows)
    outputs, minority = reference.predict(rows.x), rows.environment == 1
    by_output = (outputs - rows.y) * outputs > 0
    by_inputs = infer_environments(reference, rows).astype(bool)
    apart = [abs(side[minority].mean() - side[~minority].mean()) for side in (by_inputs, by_output)]
    assert apart[0] > 1.4 * apart[1]
    assert 0.85 < agreement(by_inputs, by_output) < 0.95


@pytest.mark.parametrize("model", [Linear(), Mlp(width=(4, 3))], ids=["linear", "mlp"])
def test_eiils_slopes_by_inputs_are_derivatives(model: Any) -> None:
    rows = spurious_rows()
    few = TrainingRows(rows.x[:5], rows.y[:5], "regression", 2)
    reference = train(ERM(), few, Setup(model, Recipe(steps=5)))
    slopes = factor_slopes(reference, few)
    end = len(reference.parameters) - (0 if isinstance(model, Linear) else 1)
    for place in range(slopes.shape[1]):
        losses = []
        for factor in (1.01, 0.99):
            parameters = reference.parameters.copy()
            parameters[end - slopes.shape[1] + place] *= factor
            losses.append(replace(reference, parameters=parameters).losses(few.x, few.y))
        np.testing.assert_allclose(slopes[:, place], (losses[0] - losses[1]) / 0.02, rtol=1e-2, atol=1e-4)


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


def test_srms_released_penalty_leaves_the_biases_out() -> None:
    """It is the mean over the 20 x 10 weights of the authors' first layer, not over its biases too."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(30, 10)).astype(np.float32), rng.normal(size=30).astype(np.float32)
    q = np.where(np.arange(30) < 6, 1 / 6, 0.0)
    rows = TrainingRows(x.astype(float), y.astype(float), "regression", 2)
    step = step_of(SRM(), rows, {"penalty": 10.0}, model=Mlp(width=(20, 10)), explored=[q])
    gap = step.rows.gradient(step.rows.risk() - step.rows.risk(step.rows.explored), of=step.rows.first_layer)
    risk = (step.rows.risk() + step.rows.risk(step.rows.explored)) / 2
    weights = gap[0, :, :10]
    assert weights.numel() == 200
    assert gap.numel() == 220
    assert step.loss().item() == pytest.approx((risk + 10 * weights.square().mean()).item(), rel=1e-9)


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
