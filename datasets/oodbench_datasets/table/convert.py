"""Texts of a table as the numbers that they stand for: markers of missing values, and marks in numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from oodbench_datasets.table.text import is_number

MARKS = {"none": "", "comma": ",", "point": ".", "space": " ", "apostrophe": "'"}


def convert_texts(data: Any, missing: Sequence[str], thousands: str, decimal: str) -> Any:
    """The pyarrow.Table with missing values for the markers, and numbers where all texts of a column are numbers.

    A column without a marker or a mark stays as it is: text that looks like numbers may be codes.
    """
    for place, name in enumerate(data.column_names):
        column = data.column(name)
        blanked = _without_markers(column, missing)
        marked = (thousands, decimal) != ("none", "point")
        if blanked is not column or marked:
            data = data.set_column(place, name, _as_numbers(blanked, MARKS[thousands], MARKS[decimal]))
    return data


def _without_markers(column: Any, missing: Sequence[str]) -> Any:
    """The same object if no marker is in it."""
    import pyarrow as pa
    import pyarrow.types as kinds
    from pyarrow import compute

    plain = column.cast(column.type.value_type) if kinds.is_dictionary(column.type) else column
    if _is_text(plain.type):
        found = compute.is_in(compute.utf8_trim_whitespace(plain), value_set=pa.array(list(missing), plain.type))
    elif kinds.is_integer(plain.type) or kinds.is_floating(plain.type):
        numbers = [float(marker) for marker in missing if is_number(marker)]
        found = compute.is_in(plain.cast(pa.float64(), safe=False), value_set=pa.array(numbers, pa.float64()))
    else:
        return column
    if not compute.any(found).as_py():
        return column
    return compute.if_else(found, pa.scalar(None, plain.type), plain)


def _as_numbers(column: Any, thousands: str, decimal: str) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    if not _is_text(column.type):
        return column
    grouped = rf"\d{{1,3}}({re.escape(thousands)}\d{{3}})+|" if thousands else ""
    point = re.escape(decimal)
    pattern = rf"^[-+]?(({grouped}\d+)({point}\d*)?|{point}\d+)([eE][-+]?\d+)?$"
    texts = compute.utf8_trim_whitespace(column)
    if thousands == " ":  # also the blanks that do not break a line
        texts = compute.replace_substring_regex(texts, "[\u00a0\u202f]", " ")
    if texts.null_count == len(texts) or not compute.all(compute.match_substring_regex(texts, pattern)).as_py():
        return column
    if thousands:
        texts = compute.replace_substring(texts, thousands, "")
    texts = compute.replace_substring(texts, decimal, ".")
    return compute.replace_substring_regex(texts, r"^\+", "").cast(pa.float64())


def _is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_string(kind) or kinds.is_large_string(kind))
