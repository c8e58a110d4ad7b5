"""Columns that tell the target: a copy of it, a category that says it, numbers that add up to it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oodbench_datasets.table.features import Feature, Number
from oodbench_datasets.table.file import TableFile
from oodbench_datasets.table.prepare import Prepared
from oodbench_datasets.table.target import Target

Array = NDArray[np.float64]

FEWEST = 20  # rows, for a column to look like a copy
ALIKE = 0.999  # correlation, or area under the curve
PERHAPS = 0.99  # on some of the rows: below, all of them are not looked at
EXPLAINED = 0.98  # of the errors that the most frequent class makes
SUMMED = 1 - 1e-6  # of the target's variance
MOST_SUMMED = 200  # columns that are tried together
LOOKED_AT = 5000  # rows that are tried together, or first


def copies_target(table: TableFile, feature: Feature, prepared: Prepared) -> bool:
    """Only rows of the training environments are looked at."""
    pool, target = prepared.pool, prepared.target
    if len(pool) < FEWEST:
        return False
    if isinstance(feature, Number):
        return _follows(feature.column[pool], target, target.y[pool])
    return _is_told(table.levels(feature.name).codes[pool], target, target.y[pool])


def find_sums(prepared: Prepared, target: str, copies: list[str]) -> Iterator[str]:
    """Columns of numbers of which none is a copy, and that together give the target, such as its parts."""
    table, pool = prepared.table, prepared.pool[:: max(1, len(prepared.pool) // LOOKED_AT)]
    numbers = [feature for feature in prepared.features if isinstance(feature, Number) and feature.name not in copies]
    if not table.holds_numbers(target) or not 2 <= len(numbers) <= MOST_SUMMED:
        return
    y = table.numbers(target, "the target")[pool]
    columns = np.column_stack([feature.column[pool] for feature in numbers])  # [row, column]
    whole = ~np.isnan(columns).any(1)
    columns, y = columns[whole], y[whole]
    if len(y) < max(FEWEST, 3 * len(numbers)) or not _explains(columns, y):
        return
    needed = list(range(len(numbers)))
    for place in range(len(numbers)):
        fewer = [other for other in needed if other != place]
        if _explains(columns[:, fewer], y):
            needed = fewer
    names = [numbers[place].name for place in needed]
    listed = " and ".join((", ".join(map(repr, names[:-1])), repr(names[-1])))
    yield (
        f"columns {listed} together give the target. "
        f"Leave them out with drop={','.join(names)}, if they are not known before the target is."
    )


def _explains(columns: Array, y: Array) -> bool:
    """Whether a linear function of the columns is the target."""
    if not columns.shape[1] or np.ptp(y) == 0:
        return False
    centered, y = columns - columns.mean(0), y - y.mean()
    scales = np.abs(centered).max(0)
    solved = np.linalg.lstsq(centered / np.where(scales > 0, scales, 1.0), y, rcond=None)[0]
    rest = y - (centered / np.where(scales > 0, scales, 1.0)) @ solved
    return bool(rest @ rest < (1 - SUMMED) * (y @ y))


def _follows(values: Array, target: Target, y: NDArray[np.float64]) -> bool:
    present = ~np.isnan(values)
    values, y = values[present], y[present]
    if len(values) < FEWEST or len(target.classes) > 2:
        return False
    few = slice(None, None, max(1, len(values) // LOOKED_AT))
    likeness = _likeness(values[few], target, y[few])
    return not likeness < PERHAPS and _likeness(values, target, y) > ALIKE


def _likeness(values: Array, target: Target, y: NDArray[np.float64]) -> float:
    """Correlation with a number, or area under the curve of two classes, in either direction; NaN where one of both
    does not vary."""
    if np.ptp(values) == 0 or np.ptp(y) == 0:
        return np.nan
    if target.task == "regression":
        with np.errstate(over="ignore", invalid="ignore"):
            return float(abs(np.corrcoef(values, y)[0, 1]))
    from scipy.stats import rankdata

    ones = int((y == 1).sum())
    area = (rankdata(values)[y == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(y) - ones))
    return float(max(area, 1 - area))


def _is_told(codes: NDArray[np.int64], target: Target, y: NDArray[np.float64]) -> bool:
    """Whether the level says the target, though there are far fewer levels than rows."""
    levels, places = np.unique(codes, return_inverse=True)
    if len(levels) > len(codes) / 5:
        return False
    if target.task == "regression":
        means = np.bincount(places, y) / np.bincount(places)
        return bool(np.var(y - means[places]) < (1 - EXPLAINED) * np.var(y))
    counts = np.zeros((len(levels), len(target.classes)))
    np.add.at(counts, (places, y.astype(np.int64)), 1)
    wrong, usual = len(y) - counts.max(1).sum(), len(y) - counts.sum(0).max()
    return bool(wrong <= (1 - EXPLAINED) * usual)
