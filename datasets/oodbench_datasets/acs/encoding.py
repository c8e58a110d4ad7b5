"""From PUMS codes to features: two encodings. All they know comes from training rows.

Their columns do not depend on the rows, so that every seed has the same. A column that is constant in the training
rows is 0 everywhere: nothing can be learned from it, and an untrained weight must not decide about other states.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.steps import NOWHERE, CodeGroups, Marked, Scaled, Step

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
    def raw(self) -> tuple[str, ...]:
        """The columns of the census that it takes."""
        return self.features

    @property
    def categories(self) -> tuple[range, ...]:
        return ()  # numbers all

    def fit(self, train: Columns) -> tuple[Step, ...]:
        """Missing numbers filled, all standardised with what the training rows had."""
        x = self._matrix(train)
        fill = np.zeros(x.shape[1])
        if self.missing == "indicator":
            seen = np.isfinite(x).any(0)
            fill[seen] = np.nanmedian(x[:, seen], axis=0)
        filled = np.where(np.isnan(x), fill, x)
        spread = filled.std(0)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)  # 0 for a constant column
        learnt = list(zip(self.columns, fill.tolist(), filled.mean(0).tolist(), scale.tolist(), strict=True))
        numbers = learnt[: len(self.features)]
        marks = zip(self.marked, learnt[len(self.features) :], strict=True)
        return (
            *(Scaled("scaled", name, (name,), fill, center, scale, True) for name, fill, center, scale in numbers),
            *(Marked("marked", name, (column,), center, scale) for name, (column, _, center, scale) in marks),
        )

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
            extra = ("missing",) if name in may_be_missing and missing == "indicator" else ()
            self.levels[name] = (*map(str, _codes(name)), *extra, "other")

    @property
    def columns(self) -> tuple[str, ...]:
        levels = (f"{name}={level}" for name, levels in self.levels.items() for level in levels)
        return (*self.numbers.columns, *levels)

    @property
    def raw(self) -> tuple[str, ...]:
        return (*self.numbers.features, *self.levels)

    @property
    def categories(self) -> tuple[range, ...]:
        """The places of the columns of each code."""
        ends = itertools.accumulate(map(len, self.levels.values()), initial=len(self.numbers.columns))
        return tuple(range(start, end) for start, end in itertools.pairwise(ends))

    def fit(self, train: Columns) -> tuple[Step, ...]:
        numbers = self.numbers.fit(train) if self.numbers.features else ()
        return (*numbers, *(self._learn(name, train[name]) for name in self.levels))

    def all_levels(self, name: str) -> CodeGroups:
        """As if training rows had all levels of a code."""
        levels, codes = self.levels[name], tuple(_codes(name))
        other = len(levels) - 1
        last = None if name in GROUPS else codes[-1]
        names = tuple(f"{name}={level}" for level in levels)
        groups = CodeGroups("groups", name, names, codes, last, (*range(len(codes)), other), other)
        if self.missing == "folktables":  # a missing code is code 0
            return replace(groups, missing=groups.places[int(groups.find(np.zeros(1, np.int64))[0])])
        return replace(groups, missing=levels.index("missing") if "missing" in levels else other)

    def _learn(self, name: str, train: NDArray[np.floating]) -> CodeGroups:
        """Levels that no training row has are `other`; with one level only, the code is constant and nowhere."""
        groups = self.all_levels(name)
        seen = groups.encode(train).max(0) > 0
        other = NOWHERE if seen.sum() <= 1 else len(seen) - 1

        def known(place: int) -> int:
            return place if seen[place] and other != NOWHERE else other

        return replace(groups, places=tuple(map(known, groups.places)), missing=known(groups.missing))


def _codes(name: str) -> Sequence[int]:
    return GROUPS[name] if name in GROUPS else LEVELS[name]
