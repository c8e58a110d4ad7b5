"""Columns as steps take them: numbers, or levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Levels:
    """A column as a number for each distinct value, and the values as text, in their own order."""

    codes: NDArray[np.int64]  # [row], -1 where missing
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: NDArray[np.int64]) -> Levels:
        return Levels(self.codes[rows], self.texts)


Column = NDArray[np.floating] | Levels
"""Numbers, NaN where missing; or levels."""


def as_levels(column: Any) -> Levels:
    """The levels of an arrow array; what is missing there, or not a number, is missing."""
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    levels = [place for place, value in enumerate(values) if not _is_missing(value)]
    levels.sort(key=values.__getitem__)
    rank = np.full(len(values) + 1, -1, dtype=np.int64)  # the last is for missing values, at -1
    rank[levels] = np.arange(len(levels))
    return Levels(rank[codes], tuple(level_text(values[place]) for place in levels))


def level_text(value: Any) -> str:
    """A value as its level is called, whatever type it has: 3 and 3.0 are the same."""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def is_text(kind: Any) -> bool:
    """Of an arrow type."""
    import pyarrow.types as kinds

    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
