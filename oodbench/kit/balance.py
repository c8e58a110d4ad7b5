"""Balanced groups of training rows: each group counts the same, by weights or by leaving rows out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.data import TrainingRows
from oodbench.errors import InvalidSetting
from oodbench.settings.space import Value

GROUPINGS = ("environment", "class", "both")


def check_groups(train: TrainingRows, hparams: Mapping[str, Value]) -> None:
    """Refuse classes as groups (hyper-parameter `by`) where there are none."""
    if train.task != "classification" and hparams["by"] != "environment":
        raise InvalidSetting(f"by={hparams['by']} needs classes, and this is a regression.\nUse by=environment.")


def needs_of_groups(hparams: Mapping[str, Value]) -> frozenset[str]:
    """What a method with the option `by` needs to be told."""
    return frozenset() if hparams["by"] == "class" else frozenset({"environments"})


def row_groups(train: TrainingRows, by: Value = "both") -> NDArray[np.int64]:
    """The number of each row's group, from 0: its environment, its class, or both, as far as they are known."""
    nothing = np.zeros(len(train), np.int64)
    environment = nothing if by == "class" or train.environment is None else train.environment
    label = nothing if by == "environment" or train.task == "regression" else train.y
    groups: NDArray[np.int64] = np.unique(environment * train.classes + label, return_inverse=True)[1]
    return groups


def balanced_weights(groups: NDArray[Any], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Factors [row] under which each group counts the same, 1 on average: for rows alike, or on their weights [row]."""
    _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if weights is not None:
        totals = np.bincount(number, weights)
        return np.asarray(weights.sum() / (len(totals) * totals[number]))
    factors: NDArray[np.float64] = len(groups) / (len(sizes) * sizes[number])
    return factors


def balanced_draw(groups: NDArray[np.int64], entropy: int) -> NDArray[np.float64]:
    """Weights [row] of 1 for as many random rows of each group as the smallest has, 0 for the others."""
    order = np.random.default_rng(entropy).permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]  # group by group
    sizes = np.bincount(groups)
    place = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the group
    weights = np.zeros(len(groups))
    weights[order[place < sizes.min()]] = 1.0
    return weights
