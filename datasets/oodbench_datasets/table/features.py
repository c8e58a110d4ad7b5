"""Columns of a table as features: scaled numbers, and a column for each level of a category.

Which features there are is said by the rows of the training environments, the same for all seeds. What is learnt
(medians, means, scales, and the levels that can be told apart) comes from a seed's training rows alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import InvalidSetting
from oodbench_datasets.table.file import Levels, TableFile

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FEW = 10  # whole numbers with no more distinct values than this are taken for codes


class Feature(Protocol):
    @property
    def name(self) -> str:
        """The column of the table."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def encode(self, rows: Integers, train: Integers) -> Array:
        """Values [row, column] of some rows, by what the training rows teach."""


@dataclass(frozen=True, eq=False)
class Number:
    """Standardised. A missing value is the training median, and is marked in a column of its own."""

    name: str
    values: Array  # [row], NaN where missing
    gaps: bool  # in the training environments

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} missing") if self.gaps else (self.name,)

    def encode(self, rows: Integers, train: Integers) -> Array:
        learnt, values = self.values[train], self.values[rows]
        missing = np.isnan(learnt)
        median = 0.0 if missing.all() else float(np.median(learnt[~missing]))
        filled = np.where(missing, median, learnt)
        scale = filled.std() if np.ptp(filled) > 0 else np.inf  # a constant teaches nothing
        gaps = np.isnan(values)
        scaled = (np.where(gaps, median, values) - filled.mean()) / scale
        return np.column_stack([scaled, gaps & missing.any()]) if self.gaps else scaled[:, None]


@dataclass(frozen=True, eq=False)
class Category:
    """A column of 0 and 1 for each common level, one for the rare ones together, one for missing values.

    What no training row has stands in no column: a weight that was never trained must not count.
    """

    name: str
    codes: Integers  # [row], -1 where missing
    places: Integers  # [level + 1], the column of each level; the last is for missing values
    columns: tuple[str, ...]

    def encode(self, rows: Integers, train: Integers) -> Array:
        places = self.places[self.codes[rows]]
        values = (places[:, None] == np.arange(len(self.columns))).astype(np.float64)
        learnt = np.isin(np.arange(len(self.columns)), self.places[self.codes[train]])
        return np.where(learnt, values, 0.0)


def find_features(
    table: TableFile,
    names: Collection[str],
    pool: Integers,
    categorical: Collection[str],
    numeric: Collection[str],
    rare: float,
) -> list[Feature]:
    """The features that these columns give; `pool` are the rows of the training environments."""
    features: list[Feature] = []
    for name in names:
        if name not in numeric:
            table.check_is_feature(name)
        values = table.numbers(name, "column") if name in numeric or table.holds_numbers(name) else None
        if values is None or name in categorical or (name not in numeric and _are_codes(values[pool])):
            category = _make_category(name, table.levels(name), pool, rare)
            features += [category] if len(category.columns) > 1 else []
        else:
            gaps = np.isnan(values[pool])
            present = values[pool][~gaps]
            varies = len(present) > 0 and (np.ptp(present) > 0 or gaps.any())
            features += [Number(name, values, bool(gaps.any()))] if varies else []
    if not features:
        raise InvalidSetting(
            "dataset 'table': no column varies in the training environments, so there is nothing to learn from.\n"
            f"Columns: {', '.join(names) or 'none'}."
        )
    return features


def _are_codes(values: Array) -> bool:
    distinct = np.unique(values[~np.isnan(values)])
    return 2 < len(distinct) <= FEW and bool((distinct == np.round(distinct)).all())


def _make_category(name: str, levels: Levels, pool: Integers, rare: float) -> Category:
    counts = np.bincount(levels.codes[pool] + 1, minlength=len(levels.texts) + 1)  # missing values first
    missing, counts = int(counts[0]), counts[1:]
    common = np.flatnonzero((counts > 0) & (counts >= rare * len(pool)))
    columns = [f"{name}={levels.texts[level]}" for level in common]
    others = -1
    if counts.sum() > counts[common].sum():
        others = len(columns)
        columns.append(f"{name} other")
    places = np.full(len(levels.texts) + 1, others, dtype=np.int64)
    places[common] = np.arange(len(common))
    places[-1] = len(columns) if missing else -1
    columns += [f"{name} missing"] if missing else []
    return Category(name, levels.codes, places, tuple(columns))
