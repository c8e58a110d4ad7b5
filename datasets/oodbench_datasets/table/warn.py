"""What in a table looks like a mistake: stray text among numbers, identifiers, text dates, a copy of the target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.numbers import is_number
from oodbench_datasets.table.features import Category, Number
from oodbench_datasets.table.file import TableFile
from oodbench_datasets.table.prepare import Prepared
from oodbench_datasets.table.settings import TableSettings
from oodbench_datasets.table.target import Target
from oodbench_datasets.table.text import LOOKED_AT, date_formats, marks_of

Array = NDArray[np.float64]

MOSTLY = 0.5  # of a column's rows are numbers: then the other texts are strays, as a single one always is
FEWEST = 20  # rows, for a column to look like an identifier or a copy
ALIKE = 0.999  # correlation, or area under the curve
EXPLAINED = 0.98  # of the errors that the most frequent class makes
FAR = 1e6  # standard deviations


def find_warnings(settings: TableSettings, prepared: Prepared) -> list[str]:
    """One sentence or two on each column that looks wrong, in the order of the file."""
    table = prepared.table
    warnings = []
    for name in table.names:
        if name in (*settings.environment, *settings.drop, settings.weight):
            continue
        found = list(_read_wrongly(table, name))
        if name != settings.target:
            found = found or list(_identifies_rows(table, name))
            if any(feature.name == name for feature in prepared.features):
                found += _copies_target(table, name, prepared)
                found += _is_merged(name, prepared)
            elif not found:
                found += _vanished(table, name, prepared)
        warnings += [f"column {name!r} {text}" for text in found]
    return warnings + list(_far_numbers(prepared))


def _read_wrongly(table: TableFile, name: str) -> Iterator[str]:
    """Text that was meant as numbers or dates."""
    if not table.holds_text(name):
        return
    levels = table.levels(name)
    rows = np.bincount(levels.codes[levels.codes >= 0], minlength=len(levels.texts))
    numbers = np.array([is_number(text) for text in levels.texts], dtype=bool)
    marked = [marks_of(text) for text in levels.texts]
    readable = numbers | np.array([marks is not None for marks in marked], dtype=bool)
    one_stray = readable.sum() > 1 and (~readable).sum() == 1
    if rows.sum() and (one_stray or rows[readable].sum() / rows.sum() >= MOSTLY):
        if not readable.all():
            strays = [levels.texts[place] for place in np.flatnonzero(~readable)]
            yield (
                f"has numbers in {rows[readable].sum()} rows and text in {rows[~readable].sum()}, such as "
                f"{strays[0]!r}: it is read as text. If these are missing values, set missing={','.join(strays[:3])}"
                + (" and so on." if len(strays) > 3 else ".")
            )
        elif any(marked):
            pairs = zip(levels.texts, marked, strict=True)
            example, thousands, decimal = next((text, *marks) for text, marks in pairs if marks)
            remedy = [f"thousands={thousands}"] if thousands != "none" else []
            remedy += [f"decimal={decimal}"] if decimal != "point" else []
            yield f"has numbers such as {example!r}, which are read as text. Set {' and '.join(remedy)}."
    elif len(levels.texts) and date_formats(levels.texts[:LOOKED_AT]):
        yield f"has dates such as {levels.texts[0]!r}, which are read as text. Set dates={name}."


def _identifies_rows(table: TableFile, name: str) -> Iterator[str]:
    if len(table) < FEWEST or table.count_distinct(name) < len(table):
        return
    remedy = f"Leave it out with drop={name}, if it says nothing of the row."
    if table.holds_numbers(name):
        values = table.numbers(name, "column")
        if np.isin(np.abs(np.diff(values)), 1).mean() > ALIKE:
            yield f"counts the rows. {remedy}"
        elif (values == np.round(values)).all():
            yield f"has another whole number in every row, as an identifier has. {remedy}"
    elif table.holds_text(name):
        yield f"has another text in every row, as an identifier has. {remedy}"


def _vanished(table: TableFile, name: str, prepared: Prepared) -> Iterator[str]:
    """A column of text that varies, and is no feature."""
    levels = table.levels(name)
    distinct = len(np.unique(levels.codes[prepared.pool]))
    if distinct > 1:
        yield f"gives no feature: all of its {distinct} levels are rare. Set many_as=target, or drop={name}."


def _is_merged(name: str, prepared: Prepared) -> Iterator[str]:
    """A category most of whose rows have rare levels."""
    feature = next(feature for feature in prepared.features if feature.name == name)
    if isinstance(feature, Category) and f"{name} other" in feature.columns:
        others = feature.places[feature.column.codes[prepared.pool]] == feature.columns.index(f"{name} other")
        if others.mean() > MOSTLY:
            yield f"has rare levels, which are merged, in {others.mean():.0%} of the rows. Set many_as=target."


def _copies_target(table: TableFile, name: str, prepared: Prepared) -> Iterator[str]:
    """Only rows of the training environments are looked at."""
    pool, target = prepared.pool, prepared.target
    feature = next(feature for feature in prepared.features if feature.name == name)
    if len(pool) < FEWEST:
        return
    if isinstance(feature, Number):
        copied = _follows(feature.column[pool], target, target.y[pool])
    else:
        copied = _is_told(table.levels(name).codes[pool], target, target.y[pool])
    if copied:
        yield f"nearly equals the target. Leave it out with drop={name}, if it is not known before the target is."


def _follows(values: Array, target: Target, y: NDArray[np.float64]) -> bool:
    present = ~np.isnan(values)
    values, y = values[present], y[present]
    if len(values) < FEWEST or np.ptp(values) == 0 or np.ptp(y) == 0:
        return False
    if target.task == "regression":
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(abs(np.corrcoef(values, y)[0, 1]) > ALIKE)
    if len(target.classes) > 2:
        return False
    from scipy.stats import rankdata

    ones = int((y == 1).sum())
    area = (rankdata(values)[y == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(y) - ones))
    return bool(max(area, 1 - area) > ALIKE)


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


def _far_numbers(prepared: Prepared) -> Iterator[str]:
    """Values that no scale of the training environments is made for: a typing error ruins every mean of errors."""
    for feature in prepared.features:
        if not isinstance(feature, Number):
            continue
        values = feature.column[prepared.pool]
        middle, spread = np.nanmedian(values), np.subtract(*np.nanpercentile(values, [90, 10]))
        spread = spread or np.ptp(values[~np.isnan(values)]) or 1.0
        for name, rows in (prepared.train | prepared.validation | prepared.test).items():
            far = np.flatnonzero(np.abs(feature.column[rows] / spread - middle / spread) > FAR)
            if len(far):
                value = feature.column[rows[far[0]]]
                yield (
                    f"column {feature.name!r} is {value:g} in environment {name!r}, over a million times further out "
                    f"than most rows of the training environments. Correct it in the file."
                )
