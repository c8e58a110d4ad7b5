"""Mixup and LISA: their losses for the draws that were made, and problems whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from formulas import Array, cross_entropies, fitted, random_rows, slope
from oodbench import Linear, Method, Mlp, Recipe, Setup, TrainingRows, check_method
from oodbench.kit import draw_partners
from oodbench_methods.erm import ERM
from oodbench_methods.lisa import LISA
from oodbench_methods.mixup import Mixup
from step import step_of


@pytest.mark.parametrize("method", [Mixup, LISA])
def test_conforms(method: type[Method]) -> None:
    check_method(method)


@pytest.mark.parametrize("seed", range(3))
def test_mixup_mixes_rows_and_losses_in_one_proportion(seed: int) -> None:
    rows = random_rows(seed, labelled=False)
    w = np.random.default_rng(seed).normal(size=3)
    step, draws = (step_of(Mixup(), rows, {"alpha": 0.7}, parameters=[w], entropy=seed) for _ in range(2))
    share = draws.rows.beta(draws.hp.alpha, len(rows))[0].double().numpy()
    partner = draws.rows.permutation()[0].numpy()
    mixed = share[:, None] * rows.x + (1 - share)[:, None] * rows.x[partner]

    def plainly(w: Array) -> float:
        own, other = (mixed @ w - rows.y) ** 2, (mixed @ w - rows.y[partner]) ** 2
        return float(np.mean(share * own + (1 - share) * other))

    direction = step.direction()[0].numpy()
    np.testing.assert_allclose(direction, slope(plainly, w), atol=1e-5)
    again = step_of(Mixup(), rows, {"alpha": 0.7}, parameters=[w], entropy=seed)
    assert np.isclose(again.loss().item(), plainly(w), rtol=1e-5)


@pytest.mark.parametrize("same_class", [0.0, 0.5, 1.0])
def test_lisa_mixes_across_environments_or_across_classes(same_class: float) -> None:
    rows = random_rows(2, size=40, classes=3)
    assert rows.environment is not None
    w = np.random.default_rng(0).normal(size=9)
    step, draws = (step_of(LISA(), rows, {"same_class": same_class}, parameters=[w]) for _ in range(2))
    choice, chance = draws.rows.uniform(40), draws.rows.uniform(40)
    share = draws.rows.beta(draws.hp.alpha, 40)[0].double().numpy()
    y, environment = torch.tensor(rows.y)[None], torch.tensor(rows.environment)[None]
    across_environments = draw_partners(chance, y, environment)[0].numpy()
    across_classes = draw_partners(chance, environment, y)[0].numpy()
    chosen = choice[0].numpy() < same_class
    partner = np.where(chosen, across_environments, across_classes)
    assert (rows.y[partner] == rows.y)[chosen].all()
    assert (rows.environment[partner] != rows.environment)[chosen].all()
    assert (rows.y[partner] != rows.y)[~chosen].all()
    assert (rows.environment[partner] == rows.environment)[~chosen].all()
    mixed = share[:, None] * rows.x + (1 - share)[:, None] * rows.x[partner]

    def plainly(w: Array) -> float:
        outputs = w.reshape(3, 3) @ mixed.T
        losses = share * cross_entropies(outputs, rows.y) + (1 - share) * cross_entropies(outputs, rows.y[partner])
        return float(losses.mean())

    np.testing.assert_allclose(step.direction()[0].numpy(), slope(plainly, w), atol=1e-5)


def test_every_partner_is_equally_likely() -> None:
    same, other = torch.tensor([[0, 0, 0, 0, 1, 1]]), torch.tensor([[0, 1, 2, 1, 0, 0]])
    chance = torch.arange(0, 1, 1 / 1000).unsqueeze(1).expand(-1, 6)
    drawn = draw_partners(chance, same.expand(1000, -1), other.expand(1000, -1))
    counts = [torch.bincount(column, minlength=6).tolist() for column in drawn.unbind(1)]
    assert np.allclose(counts[0], [0, 333, 333, 333, 0, 0], atol=1.1)
    assert np.allclose(counts[1], [500, 0, 500, 0, 0, 0], atol=1.1)
    assert counts[4] == [0, 0, 0, 0, 1000, 0]  # its class is nowhere else: it stays as it is


def test_a_class_that_is_missing_in_an_environment() -> None:
    rows = random_rows(2, size=60, environments=2, classes=3)
    assert rows.environment is not None
    y = np.where((rows.environment == 0) & (rows.y == 2), 0, rows.y)
    missing = TrainingRows(rows.x, y, "classification", 3, rows.environment)
    setup = Setup(Mlp(width=(5,)), Recipe(steps=20, batch=16))
    assert np.isfinite(fitted(LISA(), missing, setup).parameters).all()


def test_mixup_of_a_linear_relation_keeps_it() -> None:
    x = np.random.default_rng(0).normal(size=(300, 2))
    rows = TrainingRows(x, x @ [1.0, -2.0], "regression", 2)
    np.testing.assert_allclose(fitted(Mixup(), rows, alpha=1.0).parameters, [1.0, -2.0], atol=0.1)


def test_lisa_unlearns_what_the_environments_disagree_on() -> None:
    """x1 has the sign of y in environment 0 and, in the few rows of environment 1, the other."""
    rng = np.random.default_rng(1)
    environment = (rng.random(600) < 0.2).astype(np.int64)
    y = rng.integers(0, 2, 600)
    sign = 2 * y - 1
    x = np.column_stack([sign + rng.normal(size=600), np.where(environment, -1, 1) * sign + rng.normal(size=600)])
    rows = TrainingRows(x, y, "classification", 2, environment)

    def share(method: Method, **hparams: Any) -> float:
        first, second = fitted(
            method, rows, Setup(Linear(intercept=False), Recipe(steps=300)), **hparams
        ).parameters.reshape(2, 2)
        return float(abs((second - first)[1]) / abs((second - first)[0]))

    assert share(LISA(), same_class=1.0) < 0.5 * share(ERM())
