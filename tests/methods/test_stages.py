"""Methods in two stages: what the second one is fitted to, written plainly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oodbench import FittedModel, Method, Mlp, Recipe, Setup, Trainer, TrainingRows, Trial, check_method
from oodbench.engine.models import Linear, Model
from oodbench.kit import fit_logistic, hold_out
from oodbench_methods.afr import AFR
from oodbench_methods.dfr import DFR
from oodbench_methods.erm import ERM
from oodbench_methods.jtt import JTT

HPARAMS: dict[str, Any] = {"learning_rate": 0.03, "weight_decay": 0.0}


def spurious(rows: int = 400) -> TrainingRows:
    """A noisy column that follows y, and a precise one that agrees with it in environment 0, which has most rows."""
    rng = np.random.default_rng(0)
    y, environment = rng.integers(0, 2, rows), (rng.random(rows) < 0.15).astype(int)
    agrees = rng.random(rows) < np.where(environment == 0, 0.95, 0.05)
    sign = 2 * y - 1
    x = np.column_stack([sign + rng.normal(0, 1, rows), np.where(agrees, sign, -sign) + rng.normal(0, 0.2, rows)])
    return TrainingRows(x, y, "classification", 2, environment)


def fit(method: type[Any], rows: TrainingRows, model: Model, loss: Any = "auto", **hparams: float) -> FittedModel:
    trainer = Trainer(Setup(model, Recipe(steps=60, loss=loss)))
    (fitted,) = method().fit_pack({0: rows}, [Trial(0, {**HPARAMS, **hparams}, 0, 5)], trainer)
    return fitted  # type: ignore[no-any-return]


@pytest.mark.parametrize("method", [JTT, DFR, AFR])
def test_conforms(method: type[Method]) -> None:
    check_method(method)


def test_a_trial_may_have_steps_of_its_own() -> None:
    rows, trials = {0: spurious()}, [Trial(number, HPARAMS, 0, number) for number in range(3)]
    own = Trainer(Setup(Mlp(width=(4,)), Recipe(steps=30, batch=64))).fit(ERM(), rows, trials, [7, 30, 7])
    for steps, trial, model in zip((7, 30, 7), trials, own, strict=True):
        (alone,) = Trainer(Setup(Mlp(width=(4,)), Recipe(steps=steps, batch=64))).fit(ERM(), rows, [trial])
        assert np.allclose(alone.parameters, model.parameters, atol=1e-5)


def test_jtt_trains_again_with_the_errors_of_the_first_training_upweighted() -> None:
    rows, trial = spurious(), Trial(0, {**HPARAMS, "upweight": 20.0, "share": 0.5}, 0, 5)
    (first,) = Trainer(Setup(Linear(), Recipe(steps=30))).fit(ERM(), {0: rows}, [trial])
    weights = np.where(first.predict(rows.x) != rows.y, 20.0, 1.0)
    assert 0 < (weights > 1).mean() < 0.5
    (second,) = Trainer(Setup(Linear(), Recipe(steps=60))).fit(ERM(), [replace(rows, weights=weights)], [trial])
    found = fit(JTT, rows, Linear(), upweight=20.0, share=0.5)
    assert np.allclose(found.parameters, second.parameters, atol=1e-5)


@pytest.mark.parametrize("loss", ["auto", "squared"])
@pytest.mark.parametrize("model", [Linear(), Linear(intercept=False), Mlp(width=(6, 4))])
def test_a_model_under_another_last_layer(model: Model, loss: Any) -> None:
    rows = spurious()
    fitted = fit(ERM, rows, model, loss)
    z, last = fitted.represent(rows.x), fitted.last_layer(2)
    assert np.allclose(z @ last[:, :-1].T + last[:, -1], fitted.outputs(rows.x), atol=1e-4)
    other = np.random.default_rng(1).normal(size=(2, z.shape[1] + 1))
    assert np.allclose(fitted.with_last_layer(other, 2).outputs(rows.x), z @ other[:, :-1].T + other[:, -1], atol=1e-4)


def test_dfr_fits_the_last_layer_to_held_out_rows_whose_groups_count_alike() -> None:
    rows, model = spurious(), Mlp(width=(6,))
    held = hold_out(rows, 0.2, 5)
    (first,) = Trainer(Setup(model, Recipe(steps=60))).fit(
        ERM(), [replace(rows, weights=(~held).astype(float))], [Trial(0, HPARAMS, 0, 5)]
    )
    assert rows.environment is not None
    group = (2 * rows.environment + rows.y)[held]
    weights = 1 / np.bincount(group)[group]
    last = fit_logistic(first.represent(rows.x[held]), rows.y[held], 2, 1 / (0.3 * held.sum()), weights)
    expected = first.with_last_layer(last, 2).outputs(rows.x)
    assert np.allclose(fit(DFR, rows, model, C=0.3).outputs(rows.x), expected, atol=1e-4)


def test_dfr_and_afr_lean_less_on_the_spurious_column_than_erm() -> None:
    rows = spurious(2000)

    def slope(method: type[Any], **hparams: float) -> float:
        """Of the logits' difference, along the spurious column."""
        outputs = fit(method, rows, Linear(), **hparams).outputs(np.array([[0.0, 0.0], [0.0, 1.0]]))
        return float(np.diff(np.diff(outputs, axis=1), axis=0)[0, 0])

    erm = slope(ERM)
    assert erm > 0.5
    assert abs(slope(DFR, C=1.0)) < 0.5 * erm
    mild, strong = (slope(AFR, gamma=gamma, pull=1e-2) for gamma in (1.0, 4.0))
    assert erm > mild > strong


def test_held_out_rows_are_a_share_of_every_group_and_never_all_of_it() -> None:
    y = np.repeat([0, 1, 2], [50, 9, 1])
    rows = TrainingRows(np.zeros((60, 1)), y, "classification", 3)
    held = hold_out(rows, 0.2, 3)
    assert np.bincount(y[held], minlength=3).tolist() == [10, 2, 0]
    assert (held != hold_out(rows, 0.2, 4)).any()
