"""Formulas in plain numpy, and problems with a known answer, for tests of methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench import FittedModel, Linear, Method, Recipe, Setup, Trainer, TrainingRows, Trial

Array = NDArray[np.float64]


def random_rows(
    seed: int, size: int = 24, features: int = 3, environments: int = 3, classes: int = 0, labelled: bool = True
) -> TrainingRows:
    """Rows without structure, in numbers that single precision holds exactly, as the engine takes them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, features)).astype(np.float32).astype(np.float64)
    y = rng.integers(0, classes, size) if classes else rng.normal(size=size).astype(np.float32).astype(np.float64)
    environment = rng.permutation(np.arange(size) % environments) if labelled else None
    return TrainingRows(x, y, "classification" if classes else "regression", max(2, classes), environment)


def slope(function: Callable[[Array], float], at: Array, width: float = 1e-6) -> Array:
    """The gradient of a function of a vector by central differences."""
    return np.array([(function(at + e) - function(at - e)) / (2 * width) for e in width * np.eye(len(at))])


def risks(w: Array, rows: TrainingRows) -> Array:
    """The squared risk of a linear model in every environment."""
    assert rows.environment is not None
    squares = (rows.x @ w - rows.y) ** 2
    return np.array([squares[rows.environment == e].mean() for e in np.unique(rows.environment)])


def cross_entropies(outputs: Array, y: NDArray[Any]) -> Array:
    """Of outputs [class, row] for classes [row]."""
    return np.asarray(np.log(np.exp(outputs).sum(0)) - outputs[y, np.arange(len(y))])


def flipped_rows(seed: int = 0, size: int = 600) -> TrainingRows:
    """y = cause + noise; spurious = y + noise in environment 0 and -y / 5 + noise in environment 1."""
    rng = np.random.default_rng(seed)
    environment = np.arange(size) % 2
    cause = rng.normal(size=size)
    y = cause + 0.5 * rng.normal(size=size)
    spurious = np.where(environment == 0, 1.0, -0.2) * y + 0.5 * rng.normal(size=size)
    return TrainingRows(np.column_stack([cause, spurious]), y, "regression", 2, environment)


def fitted(method: Method, rows: TrainingRows, setup: Setup | None = None, **hparams: Any) -> FittedModel:
    """One training with the defaults and these hyper-parameters; a linear model without a constant, 600 steps."""
    values = {name: dimension.default for name, dimension in method.search_space().items()} | hparams
    setup = setup or Setup(Linear(intercept=False), Recipe(steps=600))
    (model,) = method.fit_pack({0: rows}, [Trial(0, values, 0, 1)], Trainer(setup))
    assert isinstance(model, FittedModel)
    return model
