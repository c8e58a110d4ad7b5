"""Steps: what becomes of one column, by what the training rows taught. Plain values, as in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.columns import Column, Levels
from oodbench.errors import UnusableData

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

NOWHERE = -1  # instead of a place among the features


@dataclass(frozen=True)
class Scaled:
    """A number, less its center and scaled. A missing one is filled first, or refused if there is nothing to fill in.

    Without a scale it is 0 everywhere: what is constant in training teaches nothing. The scale divides, or multiplies:
    both round in their own way, and a dataset keeps to its own.
    """

    takes_numbers: ClassVar[bool] = True

    kind: Literal["scaled"]
    column: str
    names: tuple[str]
    fill: float | None
    center: float
    scale: float | None
    multiplies: bool = False

    def __post_init__(self) -> None:
        _check_finite([self.center, self.fill or 0.0, self.scale or 0.0])

    def encode(self, column: Column) -> Array:  # [row, name]
        values = _numbers(column)
        gaps = np.isnan(values)
        if self.fill is None and gaps.any():
            raise UnusableData(
                f"column {self.column!r} has no value in row {int(gaps.argmax()) + 1}, and the model needs one.\n"
                "Fill it in, or leave the row out."
            )
        centered = np.where(gaps, self.fill or 0.0, values) - self.center
        if self.multiplies:
            return (centered * (0.0 if self.scale is None else self.scale))[:, None]
        return (centered / (np.inf if self.scale is None else self.scale))[:, None]


@dataclass(frozen=True)
class Marked:
    """1 where the number is missing, else 0; less its center and scaled."""

    takes_numbers: ClassVar[bool] = True

    kind: Literal["marked"]
    column: str
    names: tuple[str]
    center: float
    scale: float  # multiplies

    def __post_init__(self) -> None:
        _check_finite([self.center, self.scale])

    def encode(self, column: Column) -> Array:
        gaps = np.isnan(_numbers(column)).astype(np.float64)
        return ((gaps - self.center) * self.scale)[:, None]


@dataclass(frozen=True)
class Indicators:
    """A column of 0 and 1 for each of these levels, one for all others, one for missing values.

    A feature that no training row had stays 0: a weight that was never trained must not count.
    """

    takes_numbers: ClassVar[bool] = False

    kind: Literal["indicators"]
    column: str
    names: tuple[str, ...]
    levels: tuple[str, ...]  # the first features are theirs
    other: int  # the feature of all other levels, or nowhere
    missing: int  # the feature of missing values, or nowhere
    learnt: tuple[bool, ...]  # [name]

    def __post_init__(self) -> None:
        _check(len(self.learnt) == len(self.names) >= len(self.levels), "features")
        _check(all(NOWHERE <= place < len(self.names) for place in (self.other, self.missing)), "places")

    def encode(self, column: Column) -> Array:
        levels = _levels(column)
        index = {level: place for place, level in enumerate(self.levels)}
        places = np.array([*(index.get(text, self.other) for text in levels.texts), self.missing], dtype=np.int64)
        return _one_hot(places[levels.codes], np.array(self.learnt, dtype=bool))


@dataclass(frozen=True)
class Lookup:
    """Some numbers for each level, for levels that no training row had, and for missing values."""

    takes_numbers: ClassVar[bool] = False

    kind: Literal["lookup"]
    column: str
    names: tuple[str, ...]
    levels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]  # [level, name]
    unseen: tuple[float, ...]
    missing: tuple[float, ...]

    def __post_init__(self) -> None:
        _check(len(self.values) == len(self.levels), "levels")
        _check({len(row) for row in (*self.values, self.unseen, self.missing)} == {len(self.names)}, "values")
        _check_finite([*self.unseen, *self.missing, *(value for row in self.values for value in row)])

    def encode(self, column: Column) -> Array:
        levels = _levels(column)
        index = {level: place for place, level in enumerate(self.levels)}
        rows = [*(index.get(text, len(self.levels)) for text in levels.texts), len(self.levels) + 1]
        table = np.array([*self.values, self.unseen, self.missing], dtype=np.float64)  # [level + 2, name]
        encoded: Array = table[np.array(rows, dtype=np.int64)[levels.codes]]
        return encoded


@dataclass(frozen=True)
class CodeGroups:
    """Whole numbers in groups, each from its first code to the next one's: a column of 0 and 1 for each of them."""

    takes_numbers: ClassVar[bool] = True

    kind: Literal["groups"]
    column: str
    names: tuple[str, ...]
    starts: tuple[int, ...]
    last: int | None  # the last code of the last group
    places: tuple[int, ...]  # the feature of each group, then that of codes in none; or nowhere
    missing: int

    def __post_init__(self) -> None:
        _check(bool(self.starts) and len(self.places) == len(self.starts) + 1, "groups")
        _check(all(NOWHERE <= place < len(self.names) for place in (*self.places, self.missing)), "places")

    def encode(self, column: Column) -> Array:
        values = _numbers(column)
        present = np.isfinite(values)
        codes = np.where(present, values, 0).astype(np.int64)
        places = np.array(self.places, dtype=np.int64)[self.find(codes)]
        return _one_hot(np.where(present, places, self.missing), np.ones(len(self.names), dtype=bool))

    def find(self, codes: Integers) -> Integers:
        """The group of each code; those in none have the number after the last."""
        groups = np.searchsorted(self.starts, codes, side="right") - 1
        outside = groups < 0 if self.last is None else (groups < 0) | (codes > self.last)
        return np.where(outside, len(self.starts), groups)


Step = Scaled | Marked | Indicators | Lookup | CodeGroups


def strangers(step: Step, column: Column) -> Integers:
    """The rows with a level that training did not have; unless these share a feature with rare ones."""
    if not isinstance(step, Indicators | Lookup) or (isinstance(step, Indicators) and step.other != NOWHERE):
        return np.empty(0, dtype=np.int64)
    levels = _levels(column)
    named = set(step.levels)
    unknown = np.array([*(text not in named for text in levels.texts), False], dtype=bool)
    return np.flatnonzero(unknown[levels.codes])


def _one_hot(places: Integers, learnt: NDArray[np.bool_]) -> Array:
    values = np.zeros((len(places), len(learnt)))
    rows = np.flatnonzero(np.append(learnt, False)[places])  # nowhere is the last
    values[rows, places[rows]] = 1.0
    return values


def _numbers(column: Column) -> Array:
    assert not isinstance(column, Levels)
    return np.asarray(column, dtype=np.float64)


def _levels(column: Column) -> Levels:
    assert isinstance(column, Levels)
    return column


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"the {what} of a step do not fit together")


def _check_finite(values: Sequence[float]) -> None:
    if not np.isfinite(values).all():
        raise ValueError("a step has numbers that are not finite")


def feature_names(steps: Sequence[Step]) -> tuple[str, ...]:
    return tuple(name for step in steps for name in step.names)
