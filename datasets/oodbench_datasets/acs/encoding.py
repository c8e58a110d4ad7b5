"""From PUMS codes to features: two encodings. All they know comes from training rows.

Their columns do not depend on the rows, so that every seed has the same. A column that is constant in the training
rows is 0 everywhere: nothing can be learned from it, and an untrained weight must not decide about other states.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Columns = Mapping[str, NDArray[np.floating]]
Missing = Literal["indicator", "folktables"]

NUMBERS = ("AGEP", "SCHL", "POVPIP", "WKHP", "PINCP", "JWMNP")  # SCHL is an order of schooling
GEOGRAPHY = ("ST", "PUMA", "POWPUMA")  # codes that mean another place in every state
GROUPS = {
    # occupation: the Census Bureau's major groups, by the first code of each, the same for the code lists since 2010
    "OCCP": (0, 500, 800, 1000, 1300, 1600, 2000, 2100, 2200, 2600, 3000, 3600, 3700, 4000, 4200, 4300, 4700, 5000,
             6000, 6200, 6800, 7000, 7700, 9000, 9800, 9900),
    # place of birth: a state, a territory, Europe, Asia, the Americas, Africa, Oceania
    "POBP": (0, 60, 100, 200, 300, 400, 500),
}  # fmt: skip
LEVELS = {
    "MAR": range(1, 6), "SEX": range(1, 3), "DIS": range(1, 3), "ESP": range(1, 9), "MIG": range(1, 4),
    "RELP": range(18), "RAC1P": range(1, 10), "CIT": range(1, 6), "JWTR": range(1, 13), "COW": range(1, 10),
    "MIL": range(1, 5), "ANC": range(1, 5), "NATIVITY": range(1, 3), "DEAR": range(1, 3), "DEYE": range(1, 3),
    "DREM": range(1, 3), "GCL": range(1, 3), "ESR": range(1, 7), "FER": range(1, 3),
}  # fmt: skip
"""The codes of the data dictionary. Those that no training row has, and any beyond, are `other`."""


@dataclass(frozen=True, eq=False)
class Scaled:
    """Numbers, missing ones filled, standardised with what the training rows had."""

    fill: Array  # [column]
    center: Array
    scale: Array  # 0 for a constant column

    @classmethod
    def fit(cls, x: Array, missing: Missing) -> Scaled:
        fill = np.zeros(x.shape[1])
        if missing == "indicator":
            seen = np.isfinite(x).any(0)
            fill[seen] = np.nanmedian(x[:, seen], axis=0)
        filled = np.where(np.isnan(x), fill, x)
        spread = filled.std(0)
        return cls(fill, filled.mean(0), np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0))

    def encode(self, x: Array) -> Array:
        """In place: test states have millions of values."""
        np.copyto(x, self.fill, where=np.isnan(x))
        x -= self.center
        x *= self.scale
        return x


class Codes:
    """Codes as numbers, as the paper and folktables have them, and a column for each that may be missing."""

    def __init__(self, features: Sequence[str], may_be_missing: Sequence[str], missing: Missing) -> None:
        self.features, self.missing = tuple(features), missing
        marked = may_be_missing if missing == "indicator" else ()
        self.marked = tuple(name for name in features if name in marked)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.features, *(f"{name}_missing" for name in self.marked))

    @property
    def categories(self) -> tuple[range, ...]:
        return ()  # numbers all

    def fit(self, train: Columns) -> Codes:
        self._scaled = Scaled.fit(self._matrix(train), self.missing)
        return self

    def encode(self, rows: Columns) -> Array:  # [row, column]
        return self._scaled.encode(self._matrix(rows))

    def _matrix(self, rows: Columns) -> Array:
        x = np.empty((len(next(iter(rows.values()))), len(self.columns)))
        for index, name in enumerate(self.features):
            x[:, index] = rows[name]
        for index, name in enumerate(self.marked, len(self.features)):
            x[:, index] = np.isnan(rows[name])
        return x


class Categories:
    """Numbers standardised, codes one column a level; occupation and place of birth in groups, geography left out."""

    def __init__(self, features: Sequence[str], may_be_missing: Sequence[str], missing: Missing) -> None:
        self.missing = missing
        self.numbers = Codes([name for name in features if name in NUMBERS], may_be_missing, missing)
        self.levels: dict[str, tuple[str, ...]] = {}
        for name in features:
            if name in NUMBERS or name in GEOGRAPHY:
                continue
            codes = GROUPS[name] if name in GROUPS else LEVELS[name]
            extra = ("missing",) if name in may_be_missing and missing == "indicator" else ()
            self.levels[name] = (*map(str, codes), *extra, "other")

    @property
    def columns(self) -> tuple[str, ...]:
        levels = (f"{name}={level}" for name, levels in self.levels.items() for level in levels)
        return (*self.numbers.columns, *levels)

    @property
    def categories(self) -> tuple[range, ...]:
        """The places of the columns of each code."""
        ends = itertools.accumulate(map(len, self.levels.values()), initial=len(self.numbers.columns))
        return tuple(range(start, end) for start, end in itertools.pairwise(ends))

    def fit(self, train: Columns) -> Categories:
        if self.numbers.features:
            self.numbers.fit(train)
        self._seen = {name: np.unique(self._positions(name, train[name])) for name in self.levels}
        return self

    def encode(self, rows: Columns) -> Array:  # [row, column]
        count = len(next(iter(rows.values())))
        x = np.zeros((count, len(self.columns)))
        start = len(self.numbers.columns)
        if start:
            x[:, :start] = self.numbers.encode(rows)
        for name, levels in self.levels.items():
            beyond = len(levels) - 1
            positions = self._positions(name, rows[name])
            seen = np.zeros(len(levels), bool)
            seen[self._seen[name]] = True
            if seen.sum() > 1:  # else constant in training
                x[np.arange(count), start + np.where(seen[positions], positions, beyond)] = 1
            start += len(levels)
        return x

    def _positions(self, name: str, values: NDArray[np.floating]) -> NDArray[np.int64]:
        """The level of every row."""
        levels = self.levels[name]
        present = np.isfinite(values)
        filled = np.where(present, values, 0).astype(np.int64)
        if name in GROUPS:
            positions = np.searchsorted(GROUPS[name], filled, side="right") - 1
            positions = np.where(positions >= 0, positions, len(levels) - 1)
        else:
            codes = LEVELS[name]
            positions = np.where((filled >= codes[0]) & (filled <= codes[-1]), filled - codes[0], len(levels) - 1)
        if self.missing == "folktables":  # a missing code is code 0
            return positions
        gap = levels.index("missing") if "missing" in levels else len(levels) - 1
        return np.where(present, positions, gap)
