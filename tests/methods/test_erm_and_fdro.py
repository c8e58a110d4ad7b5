from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from oodbench import Hparams, Linear, Method, Recipe, Rows, check_method
from oodbench.engine.data import TrainingRows
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial
from oodbench_methods.erm import ERM
from oodbench_methods.fdro import FDRO
from step import step_of


@pytest.mark.parametrize("method", [ERM, FDRO])
def test_conforms(method: type[Method]) -> None:
    check_method(method)


def test_the_cvar_loss_is_the_mean_of_the_largest_losses() -> None:
    y = np.sqrt(np.arange(1.0, 21.0))  # of a model that says 0
    train = TrainingRows(np.ones((20, 1)), y, "regression", 2)
    step = step_of(FDRO(), train, {"alpha0": 0.1}, {"alpha0": 0.25}, parameters=[[0.0]])
    assert torch.allclose(step.loss().float(), torch.tensor([19.5, 18.0]))


def test_linear_cvar_regression_reaches_the_optimum_of_its_linear_programme() -> None:
    """For absolute losses CVaR is a linear programme (Rockafellar & Uryasev); here the loss is the square's root."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(200, 2)), rng.normal(size=200)
    y = x @ [1.0, -2.0] + noise * (1 + (x[:, 0] > 0))
    alpha0, n = 0.2, 200

    class AbsoluteCvar(FDRO):
        def loss(self, rows: Rows, hp: Hparams) -> torch.Tensor:
            roots = replace(rows, losses=rows.losses.sqrt())
            return super().loss(roots, hp)

    hparams: dict[str, Any] = {"learning_rate": 0.003, "weight_decay": 0.0, "alpha0": alpha0, "divergence": "cvar"}
    train = {0: TrainingRows(x, y, "regression", 2)}
    (fitted,) = Trainer(Setup(Linear(intercept=False), Recipe(steps=4000))).fit(
        AbsoluteCvar(), train, [Trial(0, hparams, 0, 1)]
    )
    reached = np.sort(np.abs(y - fitted.predict(x)))[-int(alpha0 * n) :].mean()
    # variables: w (2), eta, excess (n), absolute (n); minimize eta + mean(excess) / alpha0
    cost = np.concatenate([np.zeros(2), [1], np.full(n, 1 / (alpha0 * n)), np.zeros(n)])
    zero, eye, ones = np.zeros((n, n)), np.eye(n), np.ones((n, 1))
    constraints = np.vstack(
        [
            np.hstack([-x, np.zeros((n, 1)), zero, -eye]),
            np.hstack([x, np.zeros((n, 1)), zero, -eye]),
            np.hstack([np.zeros((n, 2)), -ones, -eye, eye]),
        ]
    )
    limits = np.concatenate([-y, y, np.zeros(n)])
    bounds = [(None, None)] * 3 + [(0, None)] * (2 * n)
    optimum = linprog(cost, A_ub=constraints, b_ub=limits, bounds=bounds).fun
    assert optimum <= reached + 1e-6
    assert reached <= 1.01 * optimum
