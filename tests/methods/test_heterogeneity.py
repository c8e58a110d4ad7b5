"""HRM and KerHRM: what is known of their pieces, and problems whose answer is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from oodbench import Linear, Method, Mlp, Predictor, Recipe, TrainingRows, check_method
from oodbench.engine.data import Task
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial
from oodbench.errors import InvalidSetting
from oodbench.kit import invariant_by_gradient, invariant_by_scale
from oodbench.kit.clustering import moments, sub_populations
from oodbench_methods.erm import ERM
from oodbench_methods.hrm import HRM
from oodbench_methods.kerhrm import KerHRM

LINEAR = Setup(Linear(intercept=False), Recipe(steps=1000))
SMALL = Setup(Mlp(width=(8,)), Recipe(steps=60))


@pytest.mark.parametrize("method", [HRM, KerHRM])
def test_conforms(method: type[Method]) -> None:
    check_method(method)


def spurious_rows(
    rows: int = 1500, minority: float = 0.2, seed: int = 0, classes: int = 0, noise: float = 0.5
) -> TrainingRows:
    """y = cause + noise; spurious = y + noise for most rows and -y + noise for the others."""
    rng = np.random.default_rng(seed)
    other = np.arange(rows) < minority * rows
    cause = rng.normal(size=rows)
    y: NDArray[Any] = cause + noise * rng.normal(size=rows)
    spurious = np.where(other, -1, 1) * y + 0.6 * noise * rng.normal(size=rows)
    if classes:
        y = np.digitize(y, np.linspace(-1, 1, classes + 1)[1:-1])
    task: Task = "classification" if classes else "regression"
    return TrainingRows(np.column_stack([cause, spurious]), y, task, classes or 2)


def train(method: Method, rows: TrainingRows, setup: Setup = LINEAR, **hparams: Any) -> Predictor:
    values = {name: dimension.default for name, dimension in method.search_space().items()} | hparams
    (fitted,) = method.fit_pack({0: rows}, [Trial(0, values, 0, 1)], Trainer(setup))
    return fitted


def reversed_error(predictor: Predictor, noise: float = 0.5) -> float:
    """The error where the spurious feature always points the other way; at best the noise's variance."""
    test = spurious_rows(minority=1.0, seed=1, noise=noise)
    return float(np.mean((predictor.predict(test.x) - test.y) ** 2))


def test_hrm_closes_the_gate_of_the_spurious_feature() -> None:
    cause, spurious = train(HRM(), spurious_rows()).parameters  # type: ignore[attr-defined]
    assert abs(spurious) < 0.2 * abs(cause)
    assert reversed_error(train(HRM(), spurious_rows())) < 0.27
    assert reversed_error(train(ERM(), spurious_rows())) > 0.35


def test_kerhrm_relies_on_it_less_than_erm() -> None:
    rows = spurious_rows(minority=0.1, noise=1.0)
    kerhrm, erm = (reversed_error(train(method, rows), noise=1.0) for method in (KerHRM(), ERM()))
    assert kerhrm < 0.75 * erm


@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("method", [HRM, KerHRM])
def test_models_of_every_kind_in_minibatches(method: type[Method], classes: int) -> None:
    rows = spurious_rows(300, classes=classes)
    fitted = train(method(), rows, Setup(Mlp(width=(8, 4)), Recipe(steps=60, batch=64)))
    assert np.isfinite(fitted.predict(rows.x)).all()


@pytest.mark.parametrize("method", [HRM, KerHRM])
def test_a_class_without_rows(method: type[Method]) -> None:
    rows = spurious_rows(300, classes=2)
    three = TrainingRows(rows.x, rows.y, "classification", 3)
    predicted = train(method(), three, SMALL).predict(rows.x)
    assert set(np.unique(predicted)) <= {0, 1}
    assert np.mean(predicted == rows.y) > 0.7


@pytest.mark.parametrize("method", [HRM, KerHRM, ERM])
def test_constant_features(method: type[Method]) -> None:
    rows = spurious_rows(300)
    padded = np.column_stack([rows.x, np.zeros(300), np.ones(300)])
    fitted = train(method(), TrainingRows(padded, rows.y, "regression", 2), SMALL)
    assert np.isfinite(fitted.predict(padded)).all()


def test_fewer_rows_than_the_basis_and_the_rank() -> None:
    rows = spurious_rows(12)
    assert np.isfinite(train(KerHRM(), rows, rank=60, basis=2500).predict(rows.x)).all()


@pytest.mark.parametrize("method", [HRM, KerHRM])
def test_more_clusters_than_rows_is_refused(method: type[Method]) -> None:
    values = {name: dimension.default for name, dimension in method().search_space().items()} | {"clusters": 50}
    with pytest.raises(InvalidSetting, match="clusters=50 is more than the 12 training rows"):
        method().check(spurious_rows(12), values)


def cluster_moments() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(2)
    x = torch.tensor(rng.normal(size=(1, 4, 300)), dtype=torch.float32)
    labels = torch.tensor(rng.integers(0, 3, (1, 300)))
    y = x[:, :1] * (1 + labels.unsqueeze(1)) + torch.tensor(rng.normal(size=(1, 1, 300)), dtype=torch.float32)
    grams, crosses = moments(x, y, sub_populations(labels, 3))
    return grams.double(), crosses.double()


def risk_and_gradient(grams: torch.Tensor, crosses: torch.Tensor, theta: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Risks (up to a constant), their gradients and slopes, of every cluster."""
    through = theta.unsqueeze(1) @ grams
    size, fit = (through * theta.unsqueeze(1)).sum((2, 3)), (crosses * theta.unsqueeze(1)).sum((2, 3))
    return size - 2 * fit, 2 * (through - crosses), 2 * (size - fit)


def descend(objective: Callable[[torch.Tensor], torch.Tensor], start: torch.Tensor) -> torch.Tensor:
    theta = start.double().clone().requires_grad_()
    optimizer = torch.optim.LBFGS([theta], max_iter=500, tolerance_grad=1e-10, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        value = objective(theta)
        value.backward()
        return value

    optimizer.step(closure)
    return theta.detach()


def test_the_closed_form_is_where_gradient_descent_ends() -> None:
    grams, crosses = cluster_moments()
    penalty, rank = torch.tensor([0.7]), torch.tensor([4.0])
    exact = invariant_by_gradient(grams, crosses, rank, penalty, Trainer(LINEAR))

    def objective(theta: torch.Tensor) -> torch.Tensor:
        risks, gradients, _ = risk_and_gradient(grams, crosses, theta)
        spread = 2 * (gradients - gradients.mean(1, keepdim=True)).square().sum() / 4
        return risks.mean() + 0.7 * spread

    np.testing.assert_allclose(exact.numpy(), descend(objective, torch.zeros(1, 1, 4)).numpy(), atol=1e-4)


def test_the_scale_penalty_reaches_its_minimum() -> None:
    grams, crosses = cluster_moments()
    penalty, rank = torch.tensor([0.5]), torch.tensor([4.0])
    reached = invariant_by_scale(grams, crosses, rank, penalty, Trainer(LINEAR))

    def objective(theta: torch.Tensor) -> torch.Tensor:
        risks, _, slopes = risk_and_gradient(grams, crosses, theta)
        return risks.mean() + 0.5 * 2 * (slopes - slopes.mean(1, keepdim=True)).square().sum()

    best = objective(descend(objective, reached)).item()
    assert objective(reached.double()).item() <= best + 0.01 * abs(best)
