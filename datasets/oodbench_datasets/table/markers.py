"""Numbers that stand for missing values: -200, 999, or 0 where nothing else is near."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST_LEVELS = 10  # of the other numbers, for the column to be a quantity
FEWEST_ROWS = 2  # that have the marker
FAR = 5  # standard deviations of the other numbers
NEAR = 0.25  # of their median: a 0 is apart from smallest numbers above this
STEPS = 10  # between neighbours among the other numbers
SHOWN = 3  # columns


def warn_of_markers(columns: Mapping[str, Array]) -> Iterator[str]:
    """A sentence or two for every number that may be a marker, with the columns that have it."""
    marked: dict[float, list[str]] = {}
    for name, values in columns.items():
        marker = find_marker(values)
        if marker is not None:
            marked.setdefault(marker, []).append(name)
    for marker, names in marked.items():
        rows = sum(int((columns[name] == marker).sum()) for name in names)
        elsewhere = any((values == marker).any() for name, values in columns.items() if name not in names)
        text = f"{marker:.15g}"
        listed = ", ".join(map(repr, names[:SHOWN])) + (f" and {len(names) - SHOWN} more" if names[SHOWN:] else "")
        remedy = ",".join(f"{name}={text}" for name in names) if elsewhere else text
        yield (
            f"{'columns' if names[1:] else 'column'} {listed}: {rows} values are {text}, apart from all others. "
            f"If it stands for a missing value, set missing={remedy}."
        )


def find_marker(values: Array) -> float | None:
    """The smallest or the largest number, if it is whole, stands in several rows, and is apart from all others.

    A number is apart if it lies far out; if it is the only negative one, and less than -1; or if it is 0, where all
    others are large.
    """
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(distinct) <= FEWEST_LEVELS:
        return None
    for place, inner in ((0, slice(1, None)), (-1, slice(None, -1))):
        marker, others = float(distinct[place]), distinct[inner]
        if marker != round(marker) or counts[place] < FEWEST_ROWS:
            continue
        middle = np.average(others, weights=counts[inner])
        spread = np.sqrt(np.average(np.square(others - middle), weights=counts[inner]))
        gap = float(np.abs(others - marker).min())
        alone = place == 0 and marker < -1 and others[0] >= 0 and gap > STEPS * np.median(np.diff(others))
        if alone or gap > FAR * spread or (marker == 0 and place == 0 and _is_apart(others, gap)):
            return marker
    return None


def _is_apart(others: Array, gap: float) -> bool:
    return bool(gap > NEAR * np.median(others) and gap > STEPS * np.median(np.diff(others)))
