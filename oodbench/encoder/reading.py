"""Raw columns: how the values of a user's rows are read, whatever type they come in. What cannot be read is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.columns import Column, Levels, as_levels, is_text, level_text
from oodbench.encoder.dates import PARTS, date_part, is_date, parse_dates, part_names, whole_seconds
from oodbench.encoder.numbers import blank, find_numbers, markers_of
from oodbench.errors import UnknownName, UnusableData

Kind = Literal["number", "code", "text", "truth", "rank", "date"]

SHOWN = 20  # column names in a message
TRUTHS = {"true": "true", "1": "true", "yes": "true", "false": "false", "0": "false", "no": "false"}


@dataclass(frozen=True)
class RawColumn:
    """A column of a user's rows.

    Numbers are quantities; codes are numbers that stand for categories; text and truth (true or false) are categories;
    ranks are ordered levels. A date becomes a column for each of its parts.
    """

    name: str
    kind: Kind
    order: tuple[str, ...] = ()  # of ranks: the levels
    format: str = ""  # of dates as text; without one, that of ISO 8601
    parts: tuple[str, ...] = ()  # of dates

    def __post_init__(self) -> None:
        if not set(self.parts) <= set(PARTS):
            raise ValueError(f"dates have the parts {', '.join(PARTS)}, not {', '.join(self.parts)}")


@dataclass(frozen=True)
class Marks:
    """How values are written in texts."""

    missing: tuple[str, ...] = ()  # what stands for a missing value; column=marker in that column alone
    thousands: Literal["none", "comma", "point", "space", "apostrophe"] = "none"
    decimal: Literal["point", "comma"] = "point"


def read_columns(
    raws: Sequence[RawColumn], marks: Marks, rows: Any, numeric_parts: Collection[str]
) -> dict[str, Column]:
    """The columns of a pandas.DataFrame or a pyarrow.Table by name; others than these are passed over.

    Parts of dates are levels, unless they are named as numeric.
    """
    table = as_arrow(rows, [raw.name for raw in raws])
    columns: dict[str, Column] = {}
    for raw in raws:
        column = blank(table[raw.name], markers_of(raw.name, marks.missing))
        if raw.kind == "date":
            columns |= _read_parts(column, raw, numeric_parts)
        else:
            columns[raw.name] = READERS[raw.kind](column, raw, marks)
    return columns


def as_arrow(rows: Any, names: Sequence[str]) -> dict[str, Any]:
    """These columns of a DataFrame or arrow table as arrow arrays, texts as plain strings."""
    import pyarrow as pa

    known = [str(name) for name in (rows.column_names if isinstance(rows, pa.Table) else rows.columns)]
    check_columns(names, known)
    if isinstance(rows, pa.Table):
        return {name: _plain(rows.column(name)) for name in names}
    return {name: _plain(_from_pandas(rows.iloc[:, known.index(name)])) for name in names}


def check_columns(names: Sequence[str], known: Sequence[str]) -> None:
    """Whether rows with the columns `known` have these, each once."""
    for name in names:
        if name not in known:
            listed = ", ".join(known[:SHOWN]) + (f" and {len(known) - SHOWN} more" if len(known) > SHOWN else "")
            raise UnknownName("column", name, known, f"The model needs it. The rows have: {listed or 'no columns'}.")
        if list(known).count(name) > 1:
            raise UnusableData(f"the rows have two columns {name!r}.\nLeave one of them out.")


def _from_pandas(series: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.Array.from_pandas(series)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # values of several types
        gaps = series.isna()
        return pa.array([None if gap else level_text(value) for value, gap in zip(series, gaps, strict=True)])


def _plain(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.types as kinds

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()) if is_text(column.type) or kinds.is_null(column.type) else column


def _read_numbers(column: Any, raw: RawColumn, marks: Marks) -> NDArray[np.float64]:
    import pyarrow as pa

    if is_text(column.type):
        column = _numbers_of_texts(column, raw, marks)
    try:
        values: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UnusableData(
            f"column {raw.name!r} holds {column.type} values, and the model takes numbers.\nTurn them into numbers."
        ) from None
    infinite = np.isinf(values)
    if infinite.any():
        raise _unreadable(raw, "an infinite value", int(infinite.argmax()), "a number")
    return values.astype(np.float64)


def _numbers_of_texts(column: Any, raw: RawColumn, marks: Marks) -> Any:
    """Those of a file's own way of writing, or plain ones."""
    import pyarrow as pa
    from pyarrow import compute

    matches, texts = find_numbers(column, marks.thousands, marks.decimal)
    if not compute.all(matches).as_py():
        matches, texts = find_numbers(column, "none", "point")
    stray = compute.index(matches, False).as_py()
    if stray >= 0:
        raise _unreadable(raw, repr(column[stray].as_py()), stray, "a number")
    whole = compute.all(compute.match_substring_regex(texts, r"^-?\d{1,18}$")).as_py()  # also codes of many digits
    return texts.cast(pa.int64() if whole and raw.kind != "number" else pa.float64())


def _read_codes(column: Any, raw: RawColumn, marks: Marks) -> Levels:
    import pyarrow as pa
    import pyarrow.types as kinds

    if is_text(column.type):
        column = _numbers_of_texts(column, raw, marks)
    return as_levels(column.cast(pa.int64()) if kinds.is_boolean(column.type) else column)


def _read_texts(column: Any, raw: RawColumn, marks: Marks) -> Levels:
    return as_levels(column)


def _read_truths(column: Any, raw: RawColumn, marks: Marks) -> Levels:
    levels = as_levels(column)
    texts = [TRUTHS.get(text.strip().lower(), "") for text in levels.texts]
    if "" in texts:
        stray = texts.index("")
        row = int((levels.codes == stray).argmax())
        raise _unreadable(raw, repr(levels.texts[stray]), row, "true or false")
    known = ("false", "true")
    places = np.array([*map(known.index, texts), -1], dtype=np.int64)
    return Levels(places[levels.codes], known)


def _read_ranks(column: Any, raw: RawColumn, marks: Marks) -> NDArray[np.float64]:
    levels = as_levels(column)
    for code, text in enumerate(levels.texts):
        if text not in raw.order:
            row = int((levels.codes == code).argmax())
            raise _unreadable(raw, repr(text), row, f"one of {', '.join(raw.order)}")
    ranks = np.array([*(raw.order.index(text) for text in levels.texts), np.nan])
    return ranks[levels.codes]


def _read_parts(column: Any, raw: RawColumn, numeric: Collection[str]) -> dict[str, Column]:
    import pyarrow as pa

    if is_date(column.type):
        dates = whole_seconds(column)
    else:
        levels = as_levels(column)
        try:
            known = parse_dates(levels.texts, raw.format)
        except ValueError as error:
            stray = str(error)
            row = int((levels.codes == levels.texts.index(stray)).argmax())
            raise _unreadable(raw, repr(stray), row, f"a date of the format {raw.format or 'ISO 8601'}") from None
        dates = np.concatenate([known, np.array(["NaT"], dtype="datetime64[s]")])[levels.codes]
    parts: dict[str, Column] = {}
    for name, part in zip(part_names(raw.name, raw.parts), raw.parts, strict=True):
        values, gaps = date_part(dates, part), np.isnat(dates)
        if name in numeric:
            parts[name] = np.where(gaps, np.nan, values.astype(np.float64))
        else:
            parts[name] = as_levels(pa.array(values, mask=gaps))
    return parts


READERS: Mapping[str, Callable[[Any, RawColumn, Marks], Column]] = {
    "number": _read_numbers,
    "code": _read_codes,
    "text": _read_texts,
    "truth": _read_truths,
    "rank": _read_ranks,
}


def _unreadable(raw: RawColumn, value: str, row: int, wanted: str) -> UnusableData:
    return UnusableData(
        f"column {raw.name!r} has {value} in row {row + 1}, which is not {wanted}.\n"
        "Correct it, or leave it empty: an empty field is a missing value."
    )
