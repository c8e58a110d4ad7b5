"""The robust losses against their duals in numpy, and on problems whose answer is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from formulas import Array, cross_entropies, fitted, random_rows, slope
from oodbench import Linear, LossMethod, Method, Mlp, Recipe, Setup, TrainingRows, check_method
from oodbench.kit import net_flow, smoothing_flows, worst_chi_square
from oodbench_methods.chi2_doro import Chi2Doro
from oodbench_methods.chi2_dro import Chi2Dro
from oodbench_methods.cvar_doro import CvarDoro
from oodbench_methods.erm import ERM
from oodbench_methods.kl_dro import KlDro
from oodbench_methods.marginal_dro import MarginalDro
from oodbench_methods.wasserstein_dro import WassersteinDro
from step import step_of

METHODS = [Chi2Dro, KlDro, CvarDoro, Chi2Doro, MarginalDro, WassersteinDro]


@pytest.mark.parametrize("method", METHODS)
def test_conforms(method: type[Method]) -> None:
    check_method(method)


def chi2(losses: Array, alpha: float) -> float:
    scale = np.sqrt(1 + (1 / alpha - 1) ** 2)
    dual = lambda eta: scale * np.sqrt(np.mean(np.maximum(losses - eta, 0) ** 2)) + eta  # noqa: E731
    spread = losses.max() - losses.min()
    return lowest(dual, losses.min() - 10 * spread, losses.max())


def kl(losses: Array, radius: float) -> float:
    top = losses.max()
    dual = lambda log: np.exp(log) * (np.log(np.mean(np.exp((losses - top) / np.exp(log)))) + radius) + top  # noqa: E731
    return lowest(dual, -10, 10)


def cvar(losses: Array, alpha: float) -> float:
    dual = lambda eta: np.mean(np.maximum(losses - eta, 0)) / alpha + eta  # noqa: E731
    return float(min(dual(eta) for eta in losses))


def trimmed(losses: Array, outliers: float) -> Array:
    return np.sort(losses)[: len(losses) - int(outliers * len(losses))]


def lowest(function: Callable[[float], float], low: float, high: float) -> float:
    """The minimum of a convex function."""
    found = minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": 1e-12, "maxiter": 2000})
    return float(found.fun)


OBJECTIVES: dict[type[LossMethod], tuple[dict[str, float], Callable[[Array], float]]] = {
    Chi2Dro: ({"alpha0": 0.2}, lambda losses: chi2(losses, 0.2)),
    KlDro: ({"radius": 0.1}, lambda losses: kl(losses, 0.1)),
    CvarDoro: ({"alpha0": 0.5, "outliers": 0.2}, lambda losses: cvar(trimmed(losses, 0.2), 0.5)),
    Chi2Doro: ({"alpha0": 0.5, "outliers": 0.2}, lambda losses: chi2(trimmed(losses, 0.2), 0.5)),
}


@pytest.mark.parametrize("method", OBJECTIVES)
@pytest.mark.parametrize("seed", range(4))
def test_loss_and_gradient_are_those_of_the_dual(method: type[LossMethod], seed: int) -> None:
    rows = random_rows(seed, size=25, labelled=False)
    w = np.random.default_rng(seed).normal(size=3)
    hparams, objective = OBJECTIVES[method]
    step = step_of(method(), rows, hparams, parameters=[w])

    def plainly(w: Array) -> float:
        return objective((rows.x @ w - rows.y) ** 2)

    assert np.isclose(step.loss().item(), plainly(w), rtol=1e-5)
    np.testing.assert_allclose(step.direction()[0].numpy(), slope(plainly, w, 1e-5), rtol=1e-3, atol=1e-4)


@given(st.lists(st.floats(0, 50, width=32), min_size=4, max_size=30), st.floats(0.05, 0.9), st.floats(0.0, 0.5))
@settings(deadline=None, max_examples=25)
def test_doro_leaves_out_the_largest_losses_first(losses: list[float], alpha: float, outliers: float) -> None:
    values = np.array(losses)
    rows = TrainingRows(np.ones((len(values), 1)), np.sqrt(values), "regression", 2)
    step = step_of(CvarDoro(), rows, {"alpha0": alpha, "outliers": outliers}, parameters=[[0.0]])
    exact = step.rows.losses[0].detach().numpy()
    kept = len(trimmed(exact, outliers * (1 + 1e-6)))
    share = max(float(np.float32(alpha)), 1 / kept)
    assert np.isclose(step.loss().item(), cvar(np.sort(exact)[:kept], share), rtol=1e-5, atol=1e-5)


def test_doros_arguments_are_not_swapped() -> None:
    """alpha0 is the share that counts and outliers the share that is dropped: 10 losses, 2 dropped, 4 counted."""
    rows = TrainingRows(np.ones((10, 1)), np.sqrt(np.arange(1.0, 11.0)), "regression", 2)
    loss = step_of(CvarDoro(), rows, {"alpha0": 0.5, "outliers": 0.2}, parameters=[[0.0]]).loss().item()
    assert np.isclose(loss, np.mean([5, 6, 7, 8]))
    losses = np.arange(1.0, 11.0)
    loss = step_of(Chi2Doro(), rows, {"alpha0": 0.5, "outliers": 0.2}, parameters=[[0.0]]).loss().item()
    assert np.isclose(loss, chi2(losses[:8], 0.5), rtol=1e-5)
    assert not np.isclose(loss, chi2(losses[:5], 0.2), rtol=1e-2)


def test_a_whole_number_of_outliers_is_dropped_whole() -> None:
    rows = TrainingRows(np.ones((100, 1)), np.sqrt(np.arange(1.0, 101.0)), "regression", 2)
    step = step_of(CvarDoro(), rows, {"alpha0": 0.01, "outliers": 0.29}, parameters=[[0.0]])
    assert np.isclose(step.loss().item(), 71.0)  # 0.29 x 100 is 28.999999 in single precision


def test_the_radius_of_kl_is_kept_as_the_losses_shrink() -> None:
    """With a fixed lambda the loss of small losses would be their mean; solved for, it scales with them."""
    y = np.sqrt(np.arange(1.0, 21.0))
    large, small = (
        step_of(KlDro(), TrainingRows(np.ones((20, 1)), scale * y, "regression", 2), {"radius": 0.3}, parameters=[[0]])
        for scale in (1.0, 1e-2)
    )
    assert np.isclose(large.loss().item(), 1e4 * small.loss().item(), rtol=1e-4)
    assert large.loss().item() > 1.2 * large.rows.losses.mean().item()


MINORITY = TrainingRows(np.ones((100, 1)), (np.arange(100) < 10).astype(float), "regression", 2)
"""A tenth of the rows is 1, the others are 0."""


@pytest.mark.parametrize(
    ("method", "hparams", "expected"),
    [
        (ERM, {}, 0.1),
        (Chi2Dro, {"alpha0": 0.05}, 0.5),
        (KlDro, {"radius": 1.0}, 0.5),
        (CvarDoro, {"alpha0": 0.05, "outliers": 0.05}, 0.5),
        (CvarDoro, {"alpha0": 0.5, "outliers": 0.15}, 0.0),
        (Chi2Doro, {"alpha0": 0.5, "outliers": 0.15}, 0.0),
    ],
)
def test_what_is_between_the_groups(method: type[LossMethod], hparams: Mapping[str, Any], expected: float) -> None:
    """Robust losses weigh both groups alike, unless the small one is taken for outliers."""
    setup = Setup(Linear(intercept=False), Recipe(steps=150))
    (mean,) = fitted(method(), MINORITY, setup, learning_rate=0.03, **hparams).parameters
    assert abs(mean - expected) < 0.06


def test_flows_reach_the_worst_weights_that_vary_slowly() -> None:
    """By duality: the largest mean under weights in the chi-square ball with n (w_i - w_j) <= radius D_ij / alpha0."""
    rng = np.random.default_rng(0)
    n, alpha, radius = 8, 0.5, 0.7
    x, losses = rng.normal(size=(n, 1)), rng.exponential(size=n)
    distances = np.abs(x - x.T)
    gaps = lambda w: (radius * distances / alpha - n * (w[:, None] - w[None])).ravel()  # noqa: E731
    constraints = [
        {"type": "eq", "fun": lambda w: w.sum() - 1},
        {"type": "ineq", "fun": lambda w: 1 / alpha**2 - n * w @ w},
        {"type": "ineq", "fun": gaps},
    ]
    best = minimize(
        lambda w: -w @ losses, np.full(n, 1 / n), bounds=[(0, 1)] * n, constraints=constraints, method="SLSQP"
    )
    values, costs = torch.tensor(losses)[None], torch.tensor(radius / alpha / n * distances)[None]
    share = torch.tensor([alpha**2], dtype=torch.float64)

    def reached(steps: int) -> float:
        flows = smoothing_flows(values, costs, share, steps)
        left = values - net_flow(flows)
        return float((worst_chi_square(left, share) * left).sum() + (costs * flows).sum())

    joint, few, many = reached(0), reached(8), reached(400)
    assert joint > few > many >= -best.fun - 1e-4
    assert many < -best.fun + 0.05 * (joint + best.fun)


def test_marginal_dro_is_its_formula_at_the_flows_it_finds() -> None:
    rows = random_rows(3, size=20, labelled=False)
    w = np.array([0.3, -1.0, 0.5])
    step = step_of(MarginalDro(), rows, {"radius": 0.8, "alpha0": 0.4}, parameters=[w])
    distances = np.sqrt(((rows.x[:, None] - rows.x[None]) ** 2).sum(-1))
    losses = torch.tensor((rows.x @ w - rows.y) ** 2)[None]
    costs, share = torch.tensor(0.8 / 0.4 / 20 * distances)[None], torch.tensor([0.16], dtype=torch.float64)
    flows = smoothing_flows(losses, costs, share, 8)[0].numpy()

    def plainly(w: Array) -> float:
        left = (rows.x @ w - rows.y) ** 2 - (flows - flows.T).sum(1)
        cost = 0.8 * (flows * distances).sum() / 20
        dual = lambda eta: (np.sqrt(np.mean(np.maximum(left - eta, 0) ** 2)) + cost) / 0.4 + eta  # noqa: E731
        return lowest(dual, left.min() - 100, left.max())

    assert flows.max() > 0
    assert np.isclose(step.loss().item(), plainly(w), rtol=1e-5)
    np.testing.assert_allclose(step.direction()[0].numpy(), slope(plainly, w, 1e-5), rtol=1e-3, atol=1e-3)


def test_marginal_dro_lies_between_the_mean_and_chi_square() -> None:
    rows = random_rows(5, size=40, labelled=False)
    radii = [{"radius": radius, "alpha0": 0.3} for radius in (0.1, 1.0, 1000.0)]
    step = step_of(MarginalDro(), rows, *radii, parameters=[[1.0, 0.0, 0.0]])
    near, middle, far = step.loss().tolist()
    chi_square = (worst_chi_square(step.rows.losses, torch.full((3,), 0.09)) * step.rows.losses).sum(-1)[0].item()
    assert step.rows.losses[0].mean().item() < near < middle < far
    assert np.isclose(far, chi_square, rtol=1e-4)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_wasserstein_adds_the_norm_of_the_coefficients(classes: int) -> None:
    rows = random_rows(1, classes=classes, labelled=False)
    outputs = max(1, classes)
    w = np.random.default_rng(2).normal(size=outputs * 4)
    step = step_of(WassersteinDro(), rows, {"radius": 0.3}, parameters=[w], model=Linear())

    def plainly(w: Array) -> float:
        units = w.reshape(outputs, 4)
        said = units[:, :3] @ rows.x.T + units[:, 3:]
        losses = cross_entropies(said, rows.y) if classes else (said[0] - rows.y) ** 2
        pairs = [units[i, :3] - units[j, :3] for i in range(outputs) for j in range(i)] or [units[0, :3]]
        return float(losses.mean() + 0.3 * max(np.linalg.norm(pair) for pair in pairs))

    assert np.isclose(step.loss().item(), plainly(w), rtol=1e-6)
    np.testing.assert_allclose(step.direction()[0].numpy(), slope(plainly, w), atol=1e-5)


def test_wasserstein_attacks_an_mlp_along_the_gradient() -> None:
    rows = random_rows(4, labelled=False)
    w = np.random.default_rng(2).normal(size=4 * 5 + 6)
    step = step_of(WassersteinDro(), rows, {"radius": 0.2}, parameters=[w], model=Mlp(width=(5,)))

    def losses(x: Array, w: Array) -> Array:
        hidden = np.maximum(w[:20].reshape(5, 4) @ np.vstack([x.T, np.ones(len(x))]), 0)
        return np.asarray((w[20:25] @ hidden + w[25] - rows.y) ** 2)

    # a row's loss depends on the row alone
    uphill = slope(lambda x: float(losses(x.reshape(-1, 3), w).sum()), rows.x.ravel()).reshape(-1, 3)
    moved = rows.x + 0.2 * uphill / np.maximum(np.linalg.norm(uphill, axis=1, keepdims=True), 1e-12)
    assert np.isclose(step.loss().item(), losses(moved, w).mean(), rtol=1e-5)
    by_formula = slope(lambda w: float(losses(moved, w).mean()), w)
    np.testing.assert_allclose(step.direction()[0].numpy(), by_formula, rtol=1e-4, atol=1e-4)
    assert step.loss().item() > step.rows.risk().item()


def test_a_large_wasserstein_ball_leaves_no_coefficients() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    rows = TrainingRows(x, 0.2 * x[:, 0] + rng.normal(size=200), "regression", 2)
    setup = Setup(Linear(), Recipe(steps=600))
    assert np.abs(fitted(WassersteinDro(), rows, setup, radius=1.0).parameters[:2]).max() < 0.02
    assert np.abs(fitted(WassersteinDro(), rows, setup, radius=1e-3).parameters[0] - 0.2) < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_linear_models_in_minibatches(method: type[LossMethod]) -> None:
    rows = random_rows(0, size=64, classes=2, labelled=False)
    assert np.isfinite(fitted(method(), rows, Setup(Linear(), Recipe(steps=10, batch=16))).parameters).all()
