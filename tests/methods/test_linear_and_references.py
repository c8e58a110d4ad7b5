"""The exact linear methods, and the references: their answers are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from oodbench import FittedModel, Linear, Method, Mlp, Recipe, Setup, Trainer, TrainingRows, Trial, check_method
from oodbench_datasets.selection_bias import SelectionBias
from oodbench_methods.constant import Constant
from oodbench_methods.logistic import Logistic
from oodbench_methods.oracle import Oracle
from oodbench_methods.ridge import Ridge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))


@pytest.mark.parametrize("method", [Constant, Ridge, Logistic, Oracle])
def test_conforms(method: type[Method]) -> None:
    check_method(method)


def test_the_constant_is_the_mean_or_the_most_frequent_class() -> None:
    values = X[:, 0] + 5
    of_values = Constant().fit(TrainingRows(X, values, "regression", 2), {}, 0)
    assert np.allclose(of_values.predict(X[:9]), values.mean())
    classes = np.repeat([0, 2, 1], [50, 90, 60])
    of_classes = Constant().fit(TrainingRows(X, classes, "classification", 4), {}, 0)
    assert (of_classes.predict(X) == 2).all()
    assert isinstance(of_classes, FittedModel)
    shares = np.array([0.25, 0.45, 0.3])
    assert of_classes.losses(X, classes).mean() == pytest.approx(-shares @ np.log(shares), abs=1e-5)


def test_ridge_finds_a_linear_mechanism_and_two_classes() -> None:
    model = Ridge().fit(TrainingRows(X, X @ [1, -2, 0] + 3, "regression", 2), {"C": 1e3}, 0)
    assert np.allclose(model.predict(X), X @ [1, -2, 0] + 3, atol=1e-3)
    y = (X[:, 0] > 0.3).astype(int)
    signs = Ridge().fit(TrainingRows(X, y, "classification", 2), {"C": 1e3}, 0)
    fitted = np.column_stack([X, np.ones(200)]) @ np.linalg.lstsq(np.column_stack([X, np.ones(200)]), 2 * y - 1)[0]
    assert np.array_equal(signs.predict(X), (fitted > 0).astype(int))


@pytest.mark.parametrize("model", [Linear(), Linear(intercept=False), Mlp(width=(4,))])
def test_the_oracle_looks_at_the_invariant_columns_alone(model: Linear | Mlp) -> None:
    dataset = SelectionBias(majority=200, minority=50)
    rows = TrainingRows.pooled(dataset.train(0), "regression", 2, False, dataset.columns)
    told = TrainingRows(rows.x, rows.y, "regression", 2, invariant=dataset.invariant)
    hparams = {"learning_rate": 0.05, "weight_decay": 0.0}
    (fitted,) = Oracle().fit_pack({0: told}, [Trial(0, hparams, 0, 1)], Trainer(Setup(model, Recipe(steps=100))))
    other = rows.x.copy()
    other[:, 5:] = 99
    assert np.array_equal(fitted.predict(rows.x), fitted.predict(other))
    assert np.mean((fitted.predict(rows.x) - rows.y) ** 2) < 0.8 * np.var(rows.y)
