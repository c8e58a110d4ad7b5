"""Columns of a table as features: scaled numbers, and a column for each level of a category.

Which features there are is said by the rows of the training environments, the same for all seeds. What is learnt
(medians, means, scales, and the levels that can be told apart) comes from a seed's training rows alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.columns import Column, Levels
from oodbench.encoder.steps import NOWHERE, Indicators, Marked, Scaled, Step
from oodbench.errors import InvalidSetting
from oodbench_datasets.table.encoding import Frequency, TargetMean
from oodbench_datasets.table.file import TableFile
from oodbench_datasets.table.ordinal import parse_ordinals
from oodbench_datasets.table.settings import TableSettings
from oodbench_datasets.table.target import Target

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FEW = 10  # whole numbers with no more distinct values than this are taken for codes


class Feature(Protocol):
    @property
    def name(self) -> str:
        """The column of the table."""

    @property
    def kind(self) -> str:
        """What the column was read as, for people."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def column(self) -> Column:
        """The column of the table, read."""

    def fit(self, train: Integers) -> tuple[Step, ...]:
        """What the training rows teach."""

    def of_training_rows(self, train: Integers) -> Array | None:
        """Values [row, column] of the training rows themselves, if they differ from what `fit` says."""


@dataclass(frozen=True, eq=False)
class Number:
    """Standardised. A missing value is the training median, and is marked in a column of its own."""

    name: str
    column: Array  # [row], NaN where missing
    gaps: bool  # in the training environments
    kind: str = "number"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} missing") if self.gaps else (self.name,)

    def fit(self, train: Integers) -> tuple[Scaled | Marked, ...]:
        learnt = self.column[train]
        missing = np.isnan(learnt)
        median = 0.0 if missing.all() else float(np.median(learnt[~missing]))
        filled = np.where(missing, median, learnt)
        scale = float(filled.std()) if np.ptp(filled) > 0 else None  # a constant teaches nothing
        scaled = Scaled("scaled", self.name, (self.name,), median, float(filled.mean()), scale)
        marked = Marked("marked", self.name, (f"{self.name} missing",), 0.0, float(missing.any()))
        return (scaled, marked) if self.gaps else (scaled,)

    def of_training_rows(self, train: Integers) -> None:
        """As of all others."""


@dataclass(frozen=True, eq=False)
class Category:
    """A column of 0 and 1 for each common level, one for the rare ones together, one for missing values.

    What no training row has stands in no column: a weight that was never trained must not count.
    """

    name: str
    column: Levels
    common: Integers  # levels with a column of their own
    columns: tuple[str, ...]
    other: int  # the place of the rare ones' column, or nowhere
    missing: int
    kind = "category"

    @property
    def places(self) -> Integers:
        """The column of each level; the last is for missing values."""
        places = np.full(len(self.column.texts) + 1, self.other, dtype=np.int64)
        places[self.common] = np.arange(len(self.common))
        places[-1] = self.missing
        return places

    def fit(self, train: Integers) -> tuple[Indicators]:
        learnt = np.isin(np.arange(len(self.columns)), self.places[self.column.codes[train]])
        levels = tuple(self.column.texts[level] for level in self.common)
        learnt_columns = tuple(learnt.tolist())
        return (Indicators("indicators", self.name, self.columns, levels, self.other, self.missing, learnt_columns),)

    def of_training_rows(self, train: Integers) -> None:
        """As of all others."""


def find_features(
    table: TableFile, names: Collection[str], pool: Integers, settings: TableSettings, target: Target
) -> list[Feature]:
    """The features that these columns give; `pool` are the rows of the training environments."""
    ordinals = parse_ordinals(settings.ordinal)
    features: list[Feature] = []
    for name in names:
        if name not in settings.numeric:
            table.check_is_feature(name)
        if table.holds_dates(name) and name not in (*settings.categorical, *settings.numeric, *ordinals):
            continue
        if name in ordinals:
            features += _make_number(name, _ranks(table, name, ordinals[name]), pool, "ordinal")
            continue
        number = name in settings.numeric or table.holds_numbers(name)
        values = table.numbers(name, "column") if number else None
        if values is None or name in settings.categorical or (name not in settings.numeric and are_codes(values[pool])):
            features += _make_category(name, table.levels(name), pool, settings, target)
        else:
            features += _make_number(name, values, pool)
    if not features:
        raise InvalidSetting(
            "dataset 'table': no column varies in the training environments, so there is nothing to learn from.\n"
            f"Columns: {', '.join(names) or 'none'}."
        )
    return features


def _make_number(name: str, values: Array, pool: Integers, kind: str = "number") -> list[Feature]:
    """Nothing of a column that does not vary."""
    gaps = np.isnan(values[pool])
    present = values[pool][~gaps]
    varies = len(present) > 0 and (np.ptp(present) > 0 or gaps.any())
    return [Number(name, values, bool(gaps.any()), kind)] if varies else []


def _ranks(table: TableFile, name: str, order: Sequence[str]) -> Array:
    levels = table.levels(name)
    for text in levels.texts:
        if text not in order:
            raise InvalidSetting(
                f"dataset 'table': column {name!r} has the level {text!r}, which ordinal does not name.\n"
                "Name all levels in their order, or list it in missing."
            )
    ranks = np.array([*(order.index(text) for text in levels.texts), np.nan])  # the last is for missing values
    return ranks[levels.codes]


def are_codes(values: Array) -> bool:
    distinct = np.unique(values[~np.isnan(values)])
    return 2 < len(distinct) <= FEW and bool((distinct == np.round(distinct)).all())


def _make_category(name: str, levels: Levels, pool: Integers, settings: TableSettings, target: Target) -> list[Feature]:
    distinct = len(np.unique(levels.codes[pool]))
    if distinct > settings.many and settings.many_as == "frequency":
        return [Frequency(name, levels)]
    if distinct > settings.many and settings.many_as == "target":
        shown = target.classes[1:] if len(target.classes) == 2 else target.classes
        columns = tuple(f"{name} share of {text}" for text in shown) or (f"{name} mean of target",)
        y = target.y[:, None] == np.arange(len(target.classes))[-len(columns) :] if shown else target.y[:, None]
        return [TargetMean(name, levels, y.astype(np.float64), columns, settings.smoothing)]
    category = _make_indicators(name, levels, pool, settings.rare)
    return [category] if len(category.columns) > 1 else []


def _make_indicators(name: str, levels: Levels, pool: Integers, rare: float) -> Category:
    counts = np.bincount(levels.codes[pool] + 1, minlength=len(levels.texts) + 1)  # missing values first
    missing, counts = int(counts[0]), counts[1:]
    common = np.flatnonzero((counts > 0) & (counts >= rare * len(pool)))
    columns = [f"{name}={levels.texts[level]}" for level in common]
    other = NOWHERE
    if counts.sum() > counts[common].sum():
        other = len(columns)
        columns.append(f"{name} other")
    place_of_missing = len(columns) if missing else NOWHERE
    columns += [f"{name} missing"] if missing else []
    return Category(name, levels, common, tuple(columns), other, place_of_missing)
