"""The forms of methods in the linear unit tests, and IRM with a matrix: their steps against formulas in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formulas import Array, fitted, random_rows, slope
from oodbench import Linear, LossMethod, Recipe, Setup, TrainingRows, check_method
from oodbench_methods.and_mask import AndMask
from oodbench_methods.ib_erm import IBERM
from oodbench_methods.ib_irm import IBIRM
from oodbench_methods.irm import IRM
from oodbench_methods.irm_matrix import IRMMatrix
from step import step_of

FORM = {"form": "unit_tests", "anneal": 0}


def risk(w: Array, rows: TrainingRows, here: Any, scale: float = 1.0, shift: float = 0.0) -> float:
    """Of one logit or value, scaled and shifted."""
    z = rows.x[here] @ w * scale + shift
    y = rows.y[here]
    return float(np.mean((z - y) ** 2 if rows.task == "regression" else np.log1p(np.exp(z)) - y * z))


def environments(rows: TrainingRows) -> list[Any]:
    assert rows.environment is not None
    return [rows.environment == number for number in np.unique(rows.environment)]


def irm(w: Array, rows: TrainingRows, odds: float) -> float:
    share = odds / (1 + odds)
    risks, gaps = [], 0.0
    for here in environments(rows):

        def changed(at: Array, here: Any = here) -> float:
            return risk(w, rows, here, *at)

        risks.append(risk(w, rows, here))
        gaps += float(np.square(slope(changed, np.array([1.0, 0.0]))).sum())
    return float((1 - share) * np.mean(risks) + share * gaps)


@pytest.mark.parametrize("classes", [0, 2])
def test_irm_and_the_bottlenecks(classes: int) -> None:
    """A classifier of two outputs is one logit, their difference."""
    rows = random_rows(3, classes=classes)
    w = np.array([0.3, -0.7, 0.4])
    parameters = np.concatenate([-0.2 * w, 0.8 * w]) if classes else w
    logits = rows.x @ w
    everyone = np.arange(len(rows.y))
    within = np.mean([logits[here].var(ddof=1) for here in environments(rows)])
    expected: list[tuple[LossMethod, dict[str, float], float]] = [
        (IRM(), {"penalty": 9.0}, irm(w, rows, 9.0)),
        (IBERM(), {"bottleneck": 0.3}, risk(w, rows, everyone) + 0.3 * logits.var(ddof=1)),
        (IBIRM(), {"penalty": 4.0, "bottleneck": 0.3}, irm(w, rows, 4.0) + 0.3 * within),
    ]
    for method, values, loss in expected:
        found = step_of(method, rows, {**FORM, **values}, parameters=parameters).loss()
        assert found.item() == pytest.approx(loss, rel=1e-6)


def test_and_mask_takes_steps_of_gradients_of_length_one() -> None:
    rows, w, constant = random_rows(5), np.array([0.3, -0.7, 0.4]), 0.2
    by_weights, by_constant = [], []
    for here in environments(rows):
        residuals = rows.x[here] @ w + constant - rows.y[here]
        gradient = 2 * rows.x[here].T @ residuals / here.sum()
        by_weights.append(gradient / np.linalg.norm(gradient))
        by_constant.append(2 * residuals.mean())
    table = np.column_stack([by_weights, by_constant])
    expected = table.mean(0) * (np.abs(np.sign(table).sum(0)) == 3)
    hparams = {"form": "unit_tests", "threshold": 1.0}
    found = step_of(AndMask(), rows, hparams, model=Linear(), parameters=[*w, constant]).direction()
    assert 0 < np.count_nonzero(expected) < 4
    assert np.allclose(found.detach().numpy()[0], expected)


def test_irm_with_a_matrix_conforms() -> None:
    check_method(IRMMatrix)


def test_irm_with_a_matrix_steps_down_its_objective() -> None:
    """Adam moves every entry of the matrix by the learning rate, against the sign of the slope of the objective."""
    rows, penalty = random_rows(7), 20.0

    def objective(entries: Array) -> float:
        matrix = entries.reshape(3, 3)
        total = 0.0
        for here in environments(rows):
            x, y = rows.x[here], rows.y[here]

            def risk_of(w: Array, x: Array = x, y: Array = y) -> float:
                return float(np.mean((x @ matrix @ w - y) ** 2))

            total += risk_of(np.ones(3)) + penalty * float(np.mean(slope(risk_of, np.ones(3)) ** 2))
        return total / (1 + penalty)

    model = fitted(IRMMatrix(), rows, Setup(Linear(), Recipe(steps=1)), penalty=penalty, learning_rate=0.001)
    step = 0.001 * np.sign(slope(objective, np.eye(3).ravel(), 1e-4)).reshape(3, 3)
    assert np.allclose(model.parameters, (np.eye(3) - step).sum(1), atol=1e-6)
