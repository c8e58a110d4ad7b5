"""The robust losses against their duals in numpy, and on problems whose answer is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

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
from step import Step, step_of

METHODS = [Chi2Dro, KlDro, CvarDoro, Chi2Doro, MarginalDro, WassersteinDro]


@pytest.mark.parametrize("method", METHODS)
def test_conforms(method: type[Method]) -> None:
    check_method(method)


# The duals, each as its value and its derivative by every loss. By the envelope theorem the latter is that of the dual
# at the eta or lambda that solves it.
Dual = tuple[float, Array]


def chi2(losses: Array, alpha: float) -> Dual:
    """min over eta of C sqrt(mean (l - eta)+^2) + eta, C = sqrt(1 + (1 / alpha - 1)^2)."""
    scale = np.sqrt(1 + (1 / alpha - 1) ** 2)
    top, spread = losses.max(), losses.max() - losses.min()
    if scale**2 >= len(losses):  # its slope is below 0 up to the largest loss
        return top, (losses == top).astype(float)

    def slope_at(eta: float) -> float:
        excess = np.maximum(losses - eta, 0)
        return float(1 - scale * excess.mean() / np.sqrt(np.mean(excess**2)))

    eta = root(slope_at, losses.min() - 10 * spread, top - 1e-9 * spread)
    excess = np.maximum(losses - eta, 0)
    norm = np.sqrt(np.mean(excess**2))
    return scale * norm + eta, scale * excess / len(losses) / norm


def kl(losses: Array, radius: float) -> Dual:
    """min over lambda of lambda log mean exp(l / lambda) + lambda radius."""
    below = losses - losses.max()

    def slope_at(log: float) -> float:
        parts = np.exp(below / np.exp(log))
        return float(np.log(parts.mean()) + radius - (below * parts).sum() / parts.sum() / np.exp(log))

    scale = np.exp(root(slope_at, np.log(np.ptp(losses)) - 6, np.log(np.ptp(losses)) + 6))
    parts = np.exp(below / scale)
    return scale * (np.log(parts.mean()) + radius) + losses.max(), parts / parts.sum()


def cvar(losses: Array, alpha: float) -> Dual:
    """min over eta of mean (l - eta)+ / alpha + eta: one of the losses."""
    duals = [np.mean(np.maximum(losses - eta, 0)) / alpha + eta for eta in losses]
    eta = losses[np.argmin(duals)]
    weights = (losses > eta) / (alpha * len(losses))
    return min(duals), weights + (losses == eta) * (1 - weights.sum())


def trimmed(losses: Array, outliers: float) -> Array:
    return np.sort(losses)[: kept(len(losses), outliers)]


def kept(rows: int, outliers: float) -> int:
    return rows - int(outliers * rows * (1 + 1e-6))


def without_outliers(dual: Callable[[Array, float], Dual]) -> Callable[[Array, float, float], Dual]:
    def of_rest(losses: Array, alpha: float, outliers: float) -> Dual:
        rest = np.argsort(losses)[: kept(len(losses), outliers)]
        weights = np.zeros(len(losses))
        value, weights[rest] = dual(losses[rest], alpha)
        return value, weights

    return of_rest


def root(slope_at: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(slope_at, low, high, xtol=1e-14, rtol=1e-14))


def floats(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers that single precision holds exactly, as the engine takes them."""
    return st.floats(float(np.float32(low)), float(np.float32(high)), width=32)


OBJECTIVES: dict[type[LossMethod], tuple[dict[str, st.SearchStrategy[float]], Callable[..., Dual]]] = {
    Chi2Dro: ({"alpha0": floats(0.02, 0.5)}, chi2),
    KlDro: ({"radius": floats(1e-3, 1.0)}, kl),
    CvarDoro: ({"alpha0": floats(0.1, 0.5), "outliers": floats(0.01, 0.5)}, without_outliers(cvar)),
    Chi2Doro: ({"alpha0": floats(0.02, 0.5), "outliers": floats(0.01, 0.5)}, without_outliers(chi2)),
}


def assert_loss_and_gradient(step: Step, loss: float, gradient: Array) -> None:
    assert step.loss().item() == pytest.approx(loss, rel=1e-5)
    largest = np.abs(gradient).max()
    np.testing.assert_allclose(step.direction()[0].numpy(), gradient, rtol=1e-5, atol=1e-5 * largest)


@pytest.mark.parametrize("method", OBJECTIVES)
@given(data=st.data(), seed=st.integers(0, 10**6), size=st.integers(20, 60))
@settings(deadline=None, max_examples=25)
def test_loss_and_gradient_are_those_of_the_dual(
    method: type[LossMethod], data: st.DataObject, seed: int, size: int
) -> None:
    space, objective = OBJECTIVES[method]
    hparams = {name: data.draw(values, name) for name, values in space.items()}
    rows = random_rows(seed, size=size, labelled=False)
    w = np.random.default_rng(seed).normal(size=3)
    residuals = rows.x @ w - rows.y
    loss, by_losses = objective(residuals**2, *hparams.values())
    step = step_of(method(), rows, hparams, parameters=[w])
    assert_loss_and_gradient(step, loss, rows.x.T @ (2 * residuals * by_losses))


@given(st.lists(st.floats(0, 50, width=32), min_size=4, max_size=30), st.floats(0.05, 0.9), st.floats(0.0, 0.5))
@settings(deadline=None, max_examples=25)
def test_doro_leaves_out_the_largest_losses_first(losses: list[float], alpha: float, outliers: float) -> None:
    values = np.array(losses)
    rows = TrainingRows(np.ones((len(values), 1)), np.sqrt(values), "regression", 2)
    step = step_of(CvarDoro(), rows, {"alpha0": alpha, "outliers": outliers}, parameters=[[0.0]])
    exact = step.rows.losses[0].detach().numpy()
    rest = trimmed(exact, outliers)
    share = max(float(np.float32(alpha)), 1 / len(rest))
    assert np.isclose(step.loss().item(), cvar(rest, share)[0], rtol=1e-5, atol=1e-5)


def test_doros_arguments_are_not_swapped() -> None:
    """alpha0 is the share that counts and outliers the share that is dropped: 10 losses, 2 dropped, 4 counted."""
    rows = TrainingRows(np.ones((10, 1)), np.sqrt(np.arange(1.0, 11.0)), "regression", 2)
    loss = step_of(CvarDoro(), rows, {"alpha0": 0.5, "outliers": 0.2}, parameters=[[0.0]]).loss().item()
    assert np.isclose(loss, np.mean([5, 6, 7, 8]))
    losses = np.arange(1.0, 11.0)
    loss = step_of(Chi2Doro(), rows, {"alpha0": 0.5, "outliers": 0.2}, parameters=[[0.0]]).loss().item()
    assert np.isclose(loss, chi2(losses[:8], 0.5)[0], rtol=1e-5)
    assert not np.isclose(loss, chi2(losses[:5], 0.2)[0], rtol=1e-2)


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


@given(st.integers(0, 10**6), st.integers(8, 40), floats(0.1, 10), floats(0.05, 0.5))
@settings(deadline=None, max_examples=25)
def test_marginal_dro_is_its_formula_at_the_flows_it_finds(seed: int, size: int, radius: float, alpha: float) -> None:
    rows = random_rows(seed, size=size, labelled=False)
    w = np.random.default_rng(seed).normal(size=3)
    residuals = rows.x @ w - rows.y
    distances = np.sqrt(((rows.x[:, None] - rows.x[None]) ** 2).sum(-1))
    costs, share = torch.tensor(radius / alpha / size * distances)[None], torch.tensor([alpha**2], dtype=torch.float64)
    flows = smoothing_flows(torch.tensor(residuals**2)[None], costs, share, 8)[0].numpy()
    left = residuals**2 - (flows - flows.T).sum(1)
    # sqrt(mean (l - eta)+^2) / alpha + eta is the dual of `chi2` where its C is 1 / alpha
    worst, by_losses = chi2(left, 1 / (1 + np.sqrt(1 / alpha**2 - 1)))
    step = step_of(MarginalDro(), rows, {"radius": radius, "alpha0": alpha}, parameters=[w])
    loss = worst + radius * (flows * distances).sum() / size / alpha
    assert_loss_and_gradient(step, loss, rows.x.T @ (2 * residuals * by_losses))


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
    first, last, constant = w[:20].reshape(5, 4), w[20:25], w[25]

    def forward(x: Array) -> tuple[Array, Array, Array]:
        """Inputs with a one, hidden units, residuals."""
        inputs = np.vstack([x.T, np.ones(len(x))])
        hidden = np.maximum(first @ inputs, 0)
        return inputs, hidden, last @ hidden + constant - rows.y

    _, hidden, residuals = forward(rows.x)
    uphill = (2 * residuals * (first[:, :3].T @ (last[:, None] * (hidden > 0)))).T  # by x, [row, feature]
    moved = rows.x + 0.2 * uphill / np.maximum(np.linalg.norm(uphill, axis=1, keepdims=True), 1e-12)
    inputs, hidden, residuals = forward(moved)
    slopes = 2 * residuals / len(rows)
    by_first = (slopes * last[:, None] * (hidden > 0)) @ inputs.T
    gradient = np.concatenate([by_first.ravel(), hidden @ slopes, [slopes.sum()]])
    assert_loss_and_gradient(step, float(np.mean(residuals**2)), gradient)
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
