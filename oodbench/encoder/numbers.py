"""Texts as the numbers that they stand for, with the marks that a file uses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

MARKS = {"none": "", "comma": ",", "point": ".", "space": " ", "apostrophe": "'"}


def find_numbers(texts: Any, thousands: str, decimal: str) -> tuple[Any, Any]:
    """Which texts of an arrow array are numbers, and the texts as arrow casts them to numbers, where they are.

    `thousands` and `decimal` are names of marks.
    """
    from pyarrow import compute

    mark, point = MARKS[thousands], MARKS[decimal]
    grouped = rf"\d{{1,3}}({re.escape(mark)}\d{{3}})+|" if mark else ""
    pattern = rf"^[-+]?(({grouped}\d+)({re.escape(point)}\d*)?|{re.escape(point)}\d+)([eE][-+]?\d+)?$"
    texts = compute.utf8_trim_whitespace(texts)
    if mark == " ":  # also the blanks that do not break a line
        texts = compute.replace_substring_regex(texts, "[\u00a0\u202f]", " ")
    matches = compute.match_substring_regex(texts, pattern)
    if mark:
        texts = compute.replace_substring(texts, mark, "")
    texts = compute.replace_substring(texts, point, ".")
    return matches, compute.replace_substring_regex(texts, r"^\+", "")


def blank(column: Any, markers: tuple[str, ...]) -> Any:
    """An arrow array without these markers of missing values; the same object if none is in it."""
    import pyarrow as pa
    import pyarrow.types as kinds
    from pyarrow import compute

    from oodbench.encoder.columns import is_text

    if is_text(column.type):
        found = compute.is_in(compute.utf8_trim_whitespace(column), value_set=pa.array(list(markers), column.type))
    elif kinds.is_integer(column.type) or kinds.is_floating(column.type):
        numbers = [float(marker) for marker in markers if is_number(marker)]
        found = compute.is_in(column.cast(pa.float64(), safe=False), value_set=pa.array(numbers, pa.float64()))
    else:
        return column
    if not compute.any(found).as_py():
        return column
    return compute.if_else(found, pa.scalar(None, column.type), column)


def markers_of(column: str, markers: Sequence[str]) -> tuple[str, ...]:
    """The markers of a column: those of all columns, and after `column=` its own."""
    own = f"{column}="
    return (*markers, *(marker.removeprefix(own) for marker in markers if marker.startswith(own)))


NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def is_number(text: str) -> bool:
    return NUMBER.fullmatch(text.strip()) is not None
