"""Ranges of numbers as a user writes them (<2013, 2013-2015, >=2016), and columns divided by them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodbench_datasets.table.target import NUMBER

Array = NDArray[np.float64]

BOUND = re.compile(rf"(>=|<=|>|<)\s*({NUMBER})")
BETWEEN = re.compile(rf"({NUMBER})\s*-\s*(<?)\s*({NUMBER})")
QUANTILES = re.compile(r"quantiles\s*(\d+)")


@dataclass(frozen=True)
class Range:
    text: str
    low: float = -math.inf
    high: float = math.inf
    above: bool = False  # low itself is outside
    below: bool = False  # high itself is outside

    def holds(self, values: Array) -> NDArray[np.bool_]:
        over = values > self.low if self.above else values >= self.low
        under = values < self.high if self.below else values <= self.high
        return over & under

    def meets(self, later: Range) -> bool:
        """Whether a later range has numbers of this one."""
        touch = self.high == later.low and not (self.below or later.above)
        return later.low < self.high or touch


@dataclass(frozen=True)
class Bins:
    """How a column is divided: into ranges, or into so many parts with equal numbers of rows."""

    column: str
    ranges: tuple[Range, ...]
    quantiles: int = 0


def parse_range(text: str) -> Range | None:
    """`2013-2015` has both ends, `2013-<2015` only the first; None if the text is no range."""
    text = text.strip()
    if match := BOUND.fullmatch(text):
        sign, number = match[1], float(match[2])
        if sign[0] == "<":
            return Range(text, high=number, below=sign == "<")
        return Range(text, low=number, above=sign == ">")
    if match := BETWEEN.fullmatch(text):
        return Range(text, float(match[1]), float(match[3]), below=bool(match[2]))
    if re.fullmatch(NUMBER, text):
        return Range(text, float(text), float(text))
    return None


def parse_bins(texts: Sequence[str]) -> dict[str, Bins]:
    """`year=<2013|2013-2015|>=2016` or `income=quantiles 4`, by the column."""
    bins: dict[str, Bins] = {}
    for text in texts:
        column, _, divided = text.partition("=")
        column = column.strip()
        if column in bins:
            raise ValueError(f"bins names column {column!r} twice.\nName it once.")
        if match := QUANTILES.fullmatch(divided.strip()):
            if not 2 <= int(match[1]) <= 1000:
                raise ValueError(f"bins={text} cannot be read.\nThere can be 2 to 1000 quantiles.")
            bins[column] = Bins(column, (), int(match[1]))
            continue
        ranges = [parse_range(part) for part in divided.split("|")]
        known = tuple(part for part in ranges if part is not None)
        if not column or len(known) < len(ranges):
            raise ValueError(
                f"bins={text} cannot be read.\nWrite it as year=<2013|2013-2015|>=2016, or as year=quantiles 4."
            )
        _check_order(text, known)
        bins[column] = Bins(column, known)
    return bins


def _check_order(text: str, ranges: Sequence[Range]) -> None:
    for part in ranges:
        if part.low > part.high or (part.low == part.high and part.below):
            raise ValueError(f"bins={text}: the range {part.text} is empty.\nWrite the smaller number first.")
    for earlier, later in itertools.pairwise(ranges):
        if later.low < earlier.low or later.high < earlier.high:
            raise ValueError(
                f"bins={text}: {later.text} is not above {earlier.text}.\nWrite the ranges in their order."
            )
        if earlier.meets(later):
            raise ValueError(
                f"bins={text}: {earlier.text} and {later.text} overlap.\nLeave an end out, as in 10-<20 or >20."
            )


def quantile_ranges(values: Array, count: int) -> list[Range] | None:
    """Ranges with equal numbers of the values, named q1, q2, ...; None if equal values do not allow it."""
    if not len(values):
        return None
    edges = np.quantile(values, np.linspace(0, 1, count + 1), method="inverted_cdf")
    if not (np.diff(edges) > 0).all():
        return None
    # a range has its upper end, the first one its lower end too
    return [Range(f"q{place + 1}", edges[place], edges[place + 1], above=place > 0) for place in range(count)]
