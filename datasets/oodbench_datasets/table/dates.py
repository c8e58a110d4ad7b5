"""Columns of dates as numbers and parts of dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.dates import PARTS, date_part, is_date, parse_dates, part_names, whole_seconds
from oodbench.errors import InvalidSetting
from oodbench_datasets.table.text import date_formats


def parts_of(column: str, parts: Sequence[str], environment: Sequence[str]) -> list[str]:
    """The parts of a column of dates that are wanted: those of all such columns, and what makes environments."""
    return [*parts, *(part for part in PARTS if part not in parts and f"{column} {part}" in environment)]


def replace_dates(
    data: Any, columns: Sequence[str], wanted: Sequence[str], format: str, environment: Sequence[str] = ()
) -> tuple[Any, Mapping[str, str]]:
    """The pyarrow.Table with the parts of each date in the place of the date, and the formats of dates as text."""
    import pyarrow as pa

    formats: dict[str, str] = {}
    for name in columns:
        place = data.column_names.index(name)
        dates, formats[name] = _dates(data.column(name), name, format)
        data = data.remove_column(place)
        parts = parts_of(name, wanted, environment)
        for part_name, part in zip(part_names(name, parts), parts, strict=True):
            if part_name in data.column_names:
                raise InvalidSetting(
                    f"dataset 'table': there is a column {part_name!r} already, as a part of {name!r} would be named.\n"
                    "Rename it in the file, or choose other parts with date_parts."
                )
            values = pa.array(date_part(dates, part), mask=np.isnat(dates))
            data = data.add_column(place, part_name, values)
            place += 1
    return data, formats


def _dates(column: Any, name: str, format: str) -> tuple[NDArray[np.datetime64], str]:
    """With the format, which only text has."""
    import pyarrow.types as kinds

    encoded = column.combine_chunks()
    if is_date(encoded.type):
        return whole_seconds(encoded), ""
    encoded = encoded if kinds.is_dictionary(encoded.type) else encoded.dictionary_encode()
    texts = ["" if value is None else str(value) for value in encoded.dictionary.to_pylist()]
    known, format = _parse(texts, name, format)
    codes = encoded.indices.fill_null(-1).to_numpy()
    dates: NDArray[np.datetime64] = np.concatenate([known, np.array(["NaT"], dtype="datetime64[s]")])[codes]
    return dates, format


def _parse(texts: Sequence[str], name: str, format: str) -> tuple[NDArray[np.datetime64], str]:
    formats = [format] if format else date_formats(texts)
    if not formats:
        some = date_formats(texts[:1])
        stray = next((text for text in texts if some and not date_formats([text])), texts[0])
        raise InvalidSetting(
            f"dataset 'table': column {name!r} has {stray!r}, and no known format of dates fits all its values.\n"
            "Correct it, list it in missing, or give a format such as date_format=%d.%m.%Y."
        )
    read = {format: _read(texts, name, format) for format in formats}
    first, values = next(iter(read.items()))
    for other, others in read.items():
        if not np.array_equal(values, others):
            raise InvalidSetting(
                f"dataset 'table': the dates of column {name!r} can be read in two ways, {first} and {other}.\n"
                f"Say which is right with date_format={first} or date_format={other}."
            )
    return values, first


def _read(texts: Sequence[str], name: str, format: str) -> NDArray[np.datetime64]:
    try:
        return parse_dates(texts, format)
    except ValueError as error:
        raise InvalidSetting(
            f"dataset 'table': column {name!r} has {str(error)!r}, which is no date of the format {format}.\n"
            "Correct it, list it in missing, or give another date_format."
        ) from None
