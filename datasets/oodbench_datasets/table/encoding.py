"""Categories with many levels as a few numbers: how frequent a level is, or the mean of the target in it.

Both are learnt from a seed's training rows alone. A training row's own target is not in its mean: the training rows are
divided into folds, and each fold gets the means of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FOLDS = 5


def level_shares(codes: Integers, levels: int) -> Array:
    """The share of each level in these rows; missing values, at -1, are the last level."""
    return np.bincount(codes % (levels + 1), minlength=levels + 1) / len(codes)  # [level + 1]


def level_means(codes: Integers, y: Array, levels: int, smoothing: float) -> Array:
    """The mean of y [row, column] in each level, as if `smoothing` rows more of the level had the mean of all."""
    places = codes % (levels + 1)
    rows = np.bincount(places, minlength=levels + 1)
    sums = np.stack([np.bincount(places, column, minlength=levels + 1) for column in y.T], axis=1)
    weights = (rows + smoothing)[:, None]
    smoothed = (sums + smoothing * y.mean(0)) / np.where(weights > 0, weights, 1.0)
    means: Array = np.where(weights > 0, smoothed, y.mean(0))  # [level + 1, column]
    return means


@dataclass(frozen=True, eq=False)
class Frequency:
    """The share of training rows that have the level, standardised."""

    name: str
    codes: Integers  # [row], -1 where missing
    levels: int
    kind = "category by frequency"

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"{self.name} frequency",)

    def encode(self, rows: Integers, train: Integers) -> Array:
        shares = level_shares(self.codes[train], self.levels)
        return _standardise(shares[self.codes[rows]][:, None], shares[self.codes[train]][:, None])


@dataclass(frozen=True, eq=False)
class TargetMean:
    """The smoothed mean of the target among training rows of the level, standardised; of classes, their shares."""

    name: str
    codes: Integers  # [row], -1 where missing
    levels: int
    y: Array  # [row, column]
    columns: tuple[str, ...]
    smoothing: float
    kind = "category by target"

    def encode(self, rows: Integers, train: Integers) -> Array:
        learnt = self._means(train)[self.codes[rows]]
        inside = self._out_of_fold(train)
        place = np.full(len(self.codes), -1)
        place[train] = np.arange(len(train))
        trained = place[rows] >= 0
        learnt[trained] = inside[place[rows][trained]]
        return _standardise(learnt, inside)

    def _out_of_fold(self, train: Integers) -> Array:
        folds = np.random.default_rng(len(train)).permutation(len(train)) % FOLDS
        values = np.empty((len(train), self.y.shape[1]))
        for fold in range(FOLDS):
            there = folds == fold
            if there.any():
                others = train[~there] if not there.all() else train
                values[there] = self._means(others)[self.codes[train[there]]]
        return values

    def _means(self, rows: Integers) -> Array:
        return level_means(self.codes[rows], self.y[rows], self.levels, self.smoothing)


def _standardise(values: Array, train: Array) -> Array:
    spread = np.where(np.ptp(train, axis=0) > 0, train.std(0), np.inf)  # a constant teaches nothing
    scaled: Array = (values - train.mean(0)) / spread
    return scaled
