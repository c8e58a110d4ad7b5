"""DWR, SRDO and ICP on problems whose answer is known."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import f, ttest_ind

from formulas import Array, fitted, slope
from oodbench import Linear, Method, Recipe, Setup, Trainer, TrainingRows, Trial, check_method
from oodbench.errors import InvalidSetting
from oodbench.kit import decorrelating_weights, independence_weights, invariant_columns
from oodbench.kit.invariance import invariance_p_value
from oodbench.kit.reweighting import decorrelation
from oodbench_methods.dwr import DWR
from oodbench_methods.erm import ERM
from oodbench_methods.icp import ICP
from oodbench_methods.srdo import SRDO

SETUP = Setup(Linear(), Recipe(steps=200))


@pytest.mark.parametrize("method", [DWR, SRDO])
def test_conforms(method: type[Method]) -> None:
    check_method(method)


@pytest.mark.filterwarnings("ignore:icp found no invariant column")
def test_icp_conforms() -> None:
    check_method(ICP)


def correlated(size: int = 400, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    common = rng.normal(size=size)
    return np.column_stack([common + rng.normal(size=size), common + rng.normal(size=size), rng.normal(size=size)])


def correlation(x: Array, weights: Array) -> float:
    covariance = np.cov(x.T, aweights=weights)
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


def effective(weights: Array) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))


def test_dwr_decorrelates_the_columns() -> None:
    x = correlated()
    trainer = Trainer(SETUP)
    weights = decorrelating_weights(x, 1, 1e-3, 100, trainer)
    assert correlation(x, np.ones(len(x))) > 0.4
    assert abs(correlation(x, weights)) < 0.05
    assert np.isclose(weights.mean(), 1)
    assert weights.min() >= 0
    assert effective(weights) > 0.5
    assert trainer.gradient_steps == 100
    both = decorrelating_weights(x, 2, 1e-3, 100, trainer)
    squares = np.column_stack([x[:, 0] ** 2, x[:, 1] ** 2])
    assert abs(correlation(squares, both)) < abs(correlation(squares, weights))


def test_the_spread_keeps_weights_from_collapsing_where_columns_are_as_many_as_rows() -> None:
    x = np.random.default_rng(0).normal(size=(30, 25))
    loose, tight = (decorrelating_weights(x, 1, spread, 200, Trainer(SETUP)) for spread in (1e-6, 1e2))
    assert effective(loose) < effective(tight)
    assert effective(tight) > 0.9


def test_dwrs_objective_and_its_gradient() -> None:
    rng = np.random.default_rng(0)
    powers, w = rng.normal(size=(12, 3)), rng.dirichlet(np.ones(12))

    def plainly(w: Array) -> float:
        means = w @ powers
        pairs = [(0, 1), (0, 2), (1, 2)]
        squares = [(w @ (powers[:, i] * powers[:, j]) - means[i] * means[j]) ** 2 for i, j in pairs]
        return float(np.sum(squares) + 0.3 * np.mean((12 * w - 1) ** 2))

    weights = torch.tensor(w, requires_grad=True)
    objective = decorrelation(torch.tensor(powers), weights, ~torch.eye(3, dtype=torch.bool), 0.3)
    (gradient,) = torch.autograd.grad(objective, weights)
    assert np.isclose(objective.item(), plainly(w))
    np.testing.assert_allclose(gradient.numpy(), slope(plainly, w), rtol=1e-6, atol=1e-7)


def test_srdo_makes_the_columns_less_dependent() -> None:
    x = correlated(1000)
    rows = TrainingRows(x, x[:, 0], "regression", 2)
    trainer = Trainer(SETUP)
    (weights,) = independence_weights(ERM(), {0: rows}, 3, trainer).values()
    assert abs(correlation(x, weights)) < 0.6 * correlation(x, np.ones(len(x)))
    assert np.isclose(weights.mean(), 1)
    assert trainer.gradient_steps == 3 * 150
    independent = np.random.default_rng(0).normal(size=(1000, 3))
    (flat,) = independence_weights(ERM(), {0: replace(rows, x=independent)}, 3, trainer).values()
    assert effective(flat) > 0.7 > effective(weights)


@pytest.mark.parametrize("method", [DWR, SRDO])
def test_a_proxy_of_what_the_model_misses_gets_less_weight(method: type[Method]) -> None:
    """y bends in x0 and does not depend on x1, which follows the bend: a line that sees correlated rows uses it."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=1000)
    proxy = np.sign(cause) * np.sqrt(np.abs(cause)) + 0.5 * rng.normal(size=1000)
    y = np.sign(cause) * np.abs(cause) ** 0.3 + 0.1 * rng.normal(size=1000)
    rows = TrainingRows(np.column_stack([cause, proxy]), y, "regression", 2)
    setup = Setup(Linear(), Recipe(steps=300))
    plain, weighted = fitted(ERM(), rows, setup), fitted(method(), rows, setup)
    assert abs(weighted.parameters[1]) < 0.8 * abs(plain.parameters[1])


def causal_rows(seed: int = 0, columns: int = 3) -> TrainingRows:
    """x0 causes y, y causes x1, x2 is noise; in environment 1 x0 and x1 are intervened on."""
    rng = np.random.default_rng(seed)
    environment = np.arange(800) % 2
    cause = rng.normal(size=800) * np.where(environment, 2.0, 1.0) + environment
    y = 1.5 * cause + rng.normal(size=800)
    effect = np.where(environment, 0.3, 1.0) * y + rng.normal(size=800)
    x = np.column_stack([cause, effect, rng.normal(size=(800, columns - 2))])
    return TrainingRows(x, y, "regression", 2, environment)


def test_icp_finds_the_cause() -> None:
    rows = causal_rows()
    assert rows.environment is not None
    assert invariant_columns(rows.x, rows.y, rows.environment, 0.05) == [0]
    np.testing.assert_allclose(fitted(ICP(), rows).parameters, [1.5, 0, 0, 0], atol=0.1)


@pytest.mark.parametrize("columns", [(), (0,), (1, 2)])
def test_icps_tests_are_those_of_scipy(columns: tuple[int, ...]) -> None:
    rows = causal_rows()
    assert rows.environment is not None
    table = np.column_stack([rows.x - rows.x.mean(0), np.ones(800), rows.y - rows.y.mean()])
    parts = [table[rows.environment == e] for e in (0, 1)]
    p_value = invariance_p_value(np.stack([part.T @ part for part in parts]), np.array([400, 400]), columns)
    design = table[:, [*columns, 3]]
    residuals = table[:, -1] - design @ np.linalg.lstsq(design, table[:, -1])[0]
    first, second = (residuals[rows.environment == e] for e in (0, 1))
    ratio = first.var(ddof=1) / second.var(ddof=1)
    by_variance = 2 * min(f.cdf(ratio, 399, 399), f.sf(ratio, 399, 399))
    by_mean = ttest_ind(first, second, equal_var=False).pvalue
    assert np.isclose(p_value, min(1, 2 * min(by_mean, by_variance)), rtol=1e-5, atol=1e-12)


def test_icp_predicts_the_mean_and_says_so_where_nothing_is_found() -> None:
    rows = causal_rows()
    same = replace(rows, environment=np.random.default_rng(0).integers(0, 2, 800))
    with pytest.warns(UserWarning, match="icp found no invariant column: it predicts the mean of y"):
        model = fitted(ICP(), same)
    np.testing.assert_allclose(model.predict(rows.x), rows.y.mean(), rtol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(ICP(), rows)


def test_icp_refuses_more_columns_than_it_can_try() -> None:
    ICP().check(causal_rows(columns=12), {})
    with pytest.raises(InvalidSetting, match="13 columns have 2\\^13 sets"):
        ICP().check(causal_rows(columns=13), {})


def test_trials_of_one_pack_have_weights_of_their_own() -> None:
    """Two orders on two seeds, in one pack and alone."""
    train = {
        seed: TrainingRows(correlated(60, seed), correlated(60, seed)[:, 2] ** 2, "regression", 2) for seed in (0, 1)
    }
    defaults = {name: dimension.default for name, dimension in DWR().search_space().items()}
    trials = [Trial(order, {**defaults, "order": order}, seed, 5) for order in (2, 1) for seed in (1, 0)]
    packed = DWR().fit_pack(train, trials, Trainer(SETUP))
    for trial, together in zip(trials, packed, strict=True):
        (alone,) = DWR().fit_pack(train, [trial], Trainer(SETUP))
        np.testing.assert_allclose(alone.predict(train[0].x), together.predict(train[0].x), atol=1e-5)
