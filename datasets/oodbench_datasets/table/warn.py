"""What in a table looks like a mistake: stray text among numbers, identifiers, text dates, a copy of the target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.numbers import is_number
from oodbench_datasets.table.columns import ColumnsOnDemand
from oodbench_datasets.table.features import Category, Number, are_codes
from oodbench_datasets.table.file import TableFile
from oodbench_datasets.table.leak import ALIKE, FEWEST, copies_target, find_sums
from oodbench_datasets.table.markers import warn_of_markers
from oodbench_datasets.table.prepare import Prepared
from oodbench_datasets.table.settings import TableSettings
from oodbench_datasets.table.text import LOOKED_AT, date_formats, marks_of

MOSTLY = 0.5  # of a column's rows are numbers: then the other texts are strays, as a single one always is
FAR = 1e6  # standard deviations


def find_warnings(settings: TableSettings, prepared: Prepared) -> list[str]:
    """One sentence or two on each column that looks wrong, in the order of the file."""
    table = prepared.table
    features = {feature.name: feature for feature in prepared.features}
    warnings: list[str] = []
    copies: list[str] = []
    for name in table.names:
        if name in (*settings.environment, *settings.drop, settings.weight):
            continue
        found = list(_read_wrongly(table, name))
        feature = features.get(name)
        if name == settings.target:
            found += _counts_as_quantity(settings, prepared)
        else:
            found = found or list(_identifies_rows(table, name))
        if feature is not None and copies_target(table, feature, prepared):
            copies.append(name)
            found.append(
                f"nearly equals the target. Leave it out with drop={name}, if it is not known before the target is."
            )
        if not found and isinstance(feature, Category):
            found += _is_merged(feature, prepared)
        elif not found and feature is None and name != settings.target:
            found += _vanished(table, name, prepared)
        warnings += [f"column {name!r} {text}" for text in found]
    warnings += _find_markers(settings, prepared)
    return [*warnings, *find_sums(prepared, settings.target, copies), *_far_numbers(prepared)]


def _read_wrongly(table: TableFile, name: str) -> Iterator[str]:
    """Text that was meant as numbers or dates, and dates that no setting names."""
    if table.holds_dates(name):
        yield f"has dates, and is left out. Set dates={name} to use them, or drop={name}."
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


def _find_markers(settings: TableSettings, prepared: Prepared) -> Iterator[str]:
    """Of the target, only rows of the training environments are looked at."""
    table, others = prepared.table, (*settings.environment, *settings.drop, settings.weight)

    def read(name: str) -> NDArray[np.float64]:
        values = table.numbers(name, "column")
        return values[prepared.pool] if name == settings.target else values

    names = [name for name in table.names if table.holds_numbers(name) and name not in others]
    return warn_of_markers(ColumnsOnDemand(names, read))


def _counts_as_quantity(settings: TableSettings, prepared: Prepared) -> Iterator[str]:
    y = prepared.target.y[prepared.pool]
    if settings.problem == "auto" and prepared.target.task == "regression" and are_codes(y):
        yield (
            f"is the target, a whole number with {len(np.unique(y))} distinct values, and is predicted as a quantity. "
            "Set task=classification for classes, positive=... for two, or task=regression if this is right."
        )


def _identifies_rows(table: TableFile, name: str) -> Iterator[str]:
    if len(table) < FEWEST:
        return
    remedy = f"Leave it out with drop={name}, if it says nothing of the row."
    if table.holds_numbers(name):
        values = table.numbers(name, "column")
        counts = (np.abs(np.diff(values)) == 1).mean() > ALIKE
        whole = (values == np.round(values)).all()
        if not (counts or whole) or not _all_differ(values):  # to compare all of them is the costly part
            return
        if counts:
            yield f"counts the rows. {remedy}"
        else:
            yield f"has another whole number in every row, as an identifier has. {remedy}"
    elif table.holds_text(name) and table.count_distinct(name) == len(table):
        yield f"has another text in every row, as an identifier has. {remedy}"


def _all_differ(values: NDArray[np.float64]) -> bool:
    ordered = np.sort(values)
    return not (np.isnan(ordered[-1]) or (ordered[1:] == ordered[:-1]).any())


def _vanished(table: TableFile, name: str, prepared: Prepared) -> Iterator[str]:
    """A column of text that varies, and is no feature."""
    levels = table.levels(name)
    distinct = len(np.unique(levels.codes[prepared.pool]))
    if distinct > 1:
        yield f"gives no feature: all of its {distinct} levels are rare. Set many_as=target, or drop={name}."


def _is_merged(feature: Category, prepared: Prepared) -> Iterator[str]:
    """A category most of whose rows have rare levels."""
    if f"{feature.name} other" in feature.columns:
        others = feature.places[feature.column.codes[prepared.pool]] == feature.columns.index(f"{feature.name} other")
        if others.mean() > MOSTLY:
            yield f"has rare levels, which are merged, in {others.mean():.0%} of the rows. Set many_as=target."


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
