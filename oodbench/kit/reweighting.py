"""Weights of training rows under which the columns are independent, or at least not correlated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.data import TrainingRows
from oodbench.engine.models import Mlp
from oodbench.engine.recipe import Recipe
from oodbench.engine.trainer import Objective, Trainer
from oodbench.engine.trial import Trial, training_entropy

if TYPE_CHECKING:
    from torch import Tensor

CLASSIFIER, CLASSIFIER_STEPS = Mlp(width=(32,)), 150  # long training would tell rows apart that are alike
DECAY = 1e-2
RATE = 0.1
RATIO = 50.0  # the largest ratio of densities: a classifier that is nearly sure is rarely right about how sure


def decorrelating_weights(
    x: NDArray[np.float64], order: int, spread: float, steps: int, trainer: Trainer
) -> NDArray[np.float64]:
    """Weights [row] of mean 1 that minimize the squared covariances of different columns' powers up to `order`.

    `spread` times the variance of the weights is added, which keeps them from collapsing onto a few rows.
    """
    import torch

    scaled = (x - x.mean(0)) / (x.std(0) + 1e-12)
    device = trainer.device
    stacked = np.hstack([scaled**power for power in range(1, order + 1)])
    powers = torch.tensor(stacked, dtype=torch.float32, device=device)
    powers = (powers - powers.mean(0)) / (powers.std(0, correction=0) + 1e-6)
    column = torch.arange(powers.shape[1], device=device) % x.shape[1]
    different = column.unsqueeze(0) != column.unsqueeze(1)
    logits = torch.zeros(1, len(x), requires_grad=True, device=device)
    rate, decay = (torch.full((1,), value, device=device) for value in (RATE, 0.0))
    optimizer = trainer.optimizer("adam", logits, rate, decay, rows=len(x))
    for _ in range(steps):
        objective = decorrelation(powers, logits.softmax(-1)[0], different, spread)
        (gradient,) = torch.autograd.grad(objective, logits)
        optimizer.step(gradient)
    weights: NDArray[np.float64] = logits.detach().double().softmax(-1)[0].cpu().numpy() * len(x)
    return weights


def decorrelation(powers: Tensor, weights: Tensor, different: Tensor, spread: float) -> Tensor:
    """The sum of squared covariances of columns [row, column] that are different, and the spread of the weights."""
    means = weights @ powers
    covariances = (powers * weights.unsqueeze(1)).T @ powers - means.unsqueeze(1) * means
    size = len(weights)
    return (covariances.square() * different).sum() / 2 + spread * (size * weights - 1).square().mean()


def independence_weights(
    method: Objective, train: Mapping[int, TrainingRows], folds: int, trainer: Trainer
) -> dict[int, NDArray[np.float64]]:
    """For every seed weights [row] of mean 1: the density of rows with independent columns by that of the rows.

    `method` trains classifiers that tell rows from rows whose columns are permuted each for itself; the weights of a
    fold come from the classifier of the other folds. What it takes is counted.
    """
    classifiers = Trainer(replace(trainer.setup, model=CLASSIFIER, recipe=Recipe(steps=CLASSIFIER_STEPS)))
    weights = {seed: _density_ratios(method, rows.x, folds, seed, classifiers) for seed, rows in train.items()}
    trainer.gradient_steps += classifiers.gradient_steps
    trainer.row_visits += classifiers.row_visits
    return weights


def _density_ratios(
    method: Objective, x: NDArray[np.float64], folds: int, seed: int, trainer: Trainer
) -> NDArray[np.float64]:
    rng = np.random.default_rng([seed, folds])
    scaled = (x - x.mean(0)) / (x.std(0) + 1e-12)
    fold = rng.permutation(len(x)) % folds
    least = int(np.sum(fold != 0))  # the largest fold is the first: all classifiers get as many rows, for one pack
    parts: Sequence[TrainingRows] = [
        _rows_and_permuted(scaled[np.flatnonzero(fold != number)[:least]], rng) for number in range(folds)
    ]
    defaults = {name: dimension.default for name, dimension in method.search_space().items()}
    trials = [Trial(number, defaults, seed, training_entropy("density ratio", number, seed)) for number in range(folds)]
    ratios = np.empty(len(x))
    for number, classifier in enumerate(trainer.fit(method, parts, trials)):
        held_out = fold == number
        rows, permuted = classifier.outputs(scaled[held_out]).T
        ratios[held_out] = np.exp(np.clip(permuted - rows, -np.log(RATIO), np.log(RATIO)))
    return np.asarray(ratios / ratios.mean())


def _rows_and_permuted(x: NDArray[np.float64], rng: np.random.Generator) -> TrainingRows:
    """Rows as class 0, and as class 1 the same with every column permuted for itself."""
    permuted = np.column_stack([rng.permutation(column) for column in x.T])
    return TrainingRows(np.vstack([x, permuted]), np.repeat([0, 1], len(x)), "classification", 2)
