"""Columns of dates as numbers and parts of dates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import InvalidSetting
from oodbench_datasets.table.text import date_formats

PARTS = ("number", "year", "month", "day", "weekday", "hour")
DAY = np.timedelta64(1, "D")


def part_names(column: str, parts: Sequence[str]) -> list[str]:
    """The columns that a column of dates becomes; its number, in days, keeps its name."""
    return [column if part == "number" else f"{column} {part}" for part in parts]


def replace_dates(data: Any, columns: Sequence[str], parts: Sequence[str], format: str) -> Any:
    """The pyarrow.Table with the parts of each date in the place of the date."""
    import pyarrow as pa

    for name in columns:
        place = data.column_names.index(name)
        dates = _dates(data.column(name), name, format)
        data = data.remove_column(place)
        for part_name, part in zip(part_names(name, parts), parts, strict=True):
            if part_name in data.column_names:
                raise InvalidSetting(
                    f"dataset 'table': there is a column {part_name!r} already, as a part of {name!r} would be named.\n"
                    "Rename it in the file, or choose other parts with date_parts."
                )
            values = pa.array(_part(dates, part), mask=np.isnat(dates))
            data = data.add_column(place, part_name, values)
            place += 1
    return data


def _dates(column: Any, name: str, format: str) -> NDArray[np.datetime64]:
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_timestamp(column.type) or kinds.is_date(column.type):
        return np.asarray(column.cast(pa.timestamp("s"), safe=False).to_numpy()).astype("datetime64[s]")
    encoded = column.combine_chunks()
    encoded = encoded if kinds.is_dictionary(encoded.type) else encoded.dictionary_encode()
    texts = ["" if value is None else str(value) for value in encoded.dictionary.to_pylist()]
    known = _parse(texts, name, format)
    codes = encoded.indices.fill_null(-1).to_numpy()
    dates: NDArray[np.datetime64] = np.concatenate([known, np.array(["NaT"], dtype="datetime64[s]")])[codes]
    return dates


def _parse(texts: Sequence[str], name: str, format: str) -> NDArray[np.datetime64]:
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
    return values


def _read(texts: Sequence[str], name: str, format: str) -> NDArray[np.datetime64]:
    dates = []
    for text in texts:
        try:
            dates.append(datetime.strptime(text.strip(), format).replace(tzinfo=None))
        except ValueError:
            raise InvalidSetting(
                f"dataset 'table': column {name!r} has {text!r}, which is no date of the format {format}.\n"
                "Correct it, list it in missing, or give another date_format."
            ) from None
    return np.array(dates, dtype="datetime64[s]")


def _part(dates: NDArray[np.datetime64], part: str) -> NDArray[Any]:
    """Months and weekdays are texts, which are categories: December is not far from January."""
    whole = np.where(np.isnat(dates), np.datetime64(0, "s"), dates)
    days = whole.astype("datetime64[D]")
    months = whole.astype("datetime64[M]")
    month_numbers: NDArray[np.int64] = months.astype(np.int64)
    weekdays: NDArray[np.int64] = (days.astype(np.int64) + 3) % 7 + 1  # 1 is Monday
    parts: dict[str, NDArray[Any]] = {
        "number": (whole - np.datetime64(0, "s")) / DAY,
        "year": month_numbers // 12 + 1970,
        "month": np.char.zfill((month_numbers % 12 + 1).astype(str), 2).astype(object),
        "day": (days - months.astype("datetime64[D]")).astype(np.int64) + 1,
        "weekday": weekdays.astype(str).astype(object),
        "hour": (whole - days).astype("timedelta64[h]").astype(np.int64),
    }
    return parts[part]
