"""Categories with many levels as a few numbers: how frequent a level is, or the mean of the target in it.

Both are learnt from a seed's training rows alone. A training row's own target is not in its mean: the training rows are
divided into folds, and each fold gets the means of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.columns import Levels
from oodbench.encoder.steps import Lookup

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
    column: Levels
    kind = "category by frequency"

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"{self.name} frequency",)

    def fit(self, train: Integers) -> tuple[Lookup]:
        codes, levels = self.column.codes[train], len(self.column.texts)
        shares = level_shares(codes, levels + 1)[:, None]  # the last but one is a level that no row has
        return (_lookup(self.name, self.columns, self.column, train, shares, shares[codes]),)

    def of_training_rows(self, train: Integers) -> None:
        """As of all others."""


@dataclass(frozen=True, eq=False)
class TargetMean:
    """The smoothed mean of the target among training rows of the level, standardised; of classes, their shares."""

    name: str
    column: Levels
    y: Array  # [row, column]
    columns: tuple[str, ...]
    smoothing: float
    kind = "category by target"

    def fit(self, train: Integers) -> tuple[Lookup]:
        return (_lookup(self.name, self.columns, self.column, train, self._means(train), self._out_of_fold(train)),)

    def of_training_rows(self, train: Integers) -> Array:
        inside = self._out_of_fold(train)
        return _standardise(inside, inside)

    def _out_of_fold(self, train: Integers) -> Array:
        folds = np.random.default_rng(len(train)).permutation(len(train)) % FOLDS
        values = np.empty((len(train), self.y.shape[1]))
        for fold in range(FOLDS):
            there = folds == fold
            if there.any():
                others = train[~there] if not there.all() else train
                values[there] = self._means(others)[self.column.codes[train[there]]]
        return values

    def _means(self, rows: Integers) -> Array:
        """Of each level, of a level that no row has, and of missing values."""
        return level_means(self.column.codes[rows], self.y[rows], len(self.column.texts) + 1, self.smoothing)


def _lookup(
    name: str, columns: tuple[str, ...], levels: Levels, train: Integers, values: Array, trained: Array
) -> Lookup:
    """`values` [level + 2, column], standardised as those of the training rows are."""
    scaled = _standardise(values, trained)
    seen = np.unique(levels.codes[train])
    seen = seen[seen >= 0]
    return Lookup(
        "lookup",
        name,
        columns,
        levels=tuple(levels.texts[level] for level in seen),
        values=tuple(tuple(row) for row in scaled[seen].tolist()),
        unseen=tuple(scaled[-2].tolist()),
        missing=tuple(scaled[-1].tolist()),
    )


def _standardise(values: Array, train: Array) -> Array:
    spread = np.where(np.ptp(train, axis=0) > 0, train.std(0), np.inf)  # a constant teaches nothing
    scaled: Array = (values - train.mean(0)) / spread
    return scaled
