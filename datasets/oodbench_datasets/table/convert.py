"""Texts of a table as the numbers that they stand for: markers of missing values, and marks in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oodbench.encoder.columns import is_text
from oodbench.encoder.numbers import blank, find_numbers, markers_of


def convert_texts(data: Any, missing: Sequence[str], thousands: str, decimal: str) -> Any:
    """The pyarrow.Table with missing values for the markers, and numbers where all texts of a column are numbers.

    A column without a marker or a mark stays as it is: text that looks like numbers may be codes.
    """
    import pyarrow.types as kinds

    for place, name in enumerate(data.column_names):
        column = data.column(name)
        plain = column.cast(column.type.value_type) if kinds.is_dictionary(column.type) else column
        blanked = blank(plain, markers_of(name, missing))
        marked = (thousands, decimal) != ("none", "point")
        if blanked is not plain or marked:
            data = data.set_column(place, name, _as_numbers(blanked, thousands, decimal))
    return data


def _as_numbers(column: Any, thousands: str, decimal: str) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    if not is_text(column.type) or column.null_count == len(column):
        return column
    matches, texts = find_numbers(column, thousands, decimal)
    return texts.cast(pa.float64()) if compute.all(matches).as_py() else column
