"""Dates as numbers and parts of dates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTS = ("number", "year", "month", "day", "weekday", "hour")
DAY = np.timedelta64(1, "D")
MONTHS = np.array([f"{month:02}" for month in range(1, 13)], dtype=object)

Dates = NDArray[np.datetime64]


def part_names(column: str, parts: Sequence[str]) -> list[str]:
    """The columns that a column of dates becomes; its number, in days, keeps its name."""
    return [column if part == "number" else f"{column} {part}" for part in parts]


def date_part(dates: Dates, part: str) -> NDArray[Any]:
    """Months and weekdays are texts, which are categories: December is not far from January. Of no date, any value."""
    whole = np.where(np.isnat(dates), np.datetime64(0, "s"), dates)
    days = whole.astype("datetime64[D]")
    months = whole.astype("datetime64[M]")
    month_numbers: NDArray[np.int64] = months.astype(np.int64)
    weekdays: NDArray[np.int64] = (days.astype(np.int64) + 3) % 7 + 1  # 1 is Monday
    parts: dict[str, NDArray[Any]] = {
        "number": (whole - np.datetime64(0, "s")) / DAY,
        "year": month_numbers // 12 + 1970,
        "month": MONTHS[month_numbers % 12],
        "day": (days - months.astype("datetime64[D]")).astype(np.int64) + 1,
        "weekday": weekdays.astype(str).astype(object),
        "hour": (whole - days).astype("timedelta64[h]").astype(np.int64),
    }
    return parts[part]


def is_date(kind: Any) -> bool:
    """Of an arrow type."""
    import pyarrow.types as kinds

    return bool(kinds.is_timestamp(kind) or kinds.is_date(kind))


def whole_seconds(column: Any) -> Dates:
    """An arrow array of dates or times."""
    import pyarrow as pa

    return np.asarray(column.cast(pa.timestamp("s"), safe=False).to_numpy(zero_copy_only=False)).astype("datetime64[s]")


def parse_date(text: str, format: str) -> datetime:
    """In that format, or without one in that of ISO 8601. ValueError where it is no such date."""
    if format:
        return datetime.strptime(text.strip(), format).replace(tzinfo=None)
    date = datetime.fromisoformat(text.strip())
    return date.astimezone(UTC).replace(tzinfo=None) if date.tzinfo else date


def parse_dates(texts: Sequence[str], format: str) -> Dates:
    """`ValueError(text)` of the first that is no such date."""
    dates = []
    for text in texts:
        try:
            dates.append(parse_date(text, format))
        except ValueError:
            raise ValueError(text) from None
    return np.array(dates, dtype="datetime64[s]")
