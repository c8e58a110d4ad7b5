"""What texts in a column look like: numbers, numbers with marks for thousands, dates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

MARKED = {  # (mark of thousands, decimal mark) as a user sets them
    ("comma", "point"): re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?"),
    ("point", "comma"): re.compile(r"[-+]?\d{1,3}(\.\d{3})+(,\d+)?"),
    ("space", "point"): re.compile(r"[-+]?\d{1,3}([ \u00a0\u202f]\d{3})+(\.\d+)?"),
    ("none", "comma"): re.compile(r"[-+]?\d*,\d+"),
}
DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y%m%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%d %b %Y",
    "%b %d, %Y",
)
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S")
LOOKED_AT = 200  # texts that are tried as dates


def marks_of(text: str) -> tuple[str, str] | None:
    """The marks of thousands and decimals with which the text is a number that a plain reader does not know."""
    return next((marks for marks, pattern in MARKED.items() if pattern.fullmatch(text.strip())), None)


def date_formats(texts: Iterable[str]) -> list[str]:
    """The formats in which all of these texts are dates."""
    formats = [day + time for day in DATE_FORMATS for time in TIMES]
    for text in texts:
        formats = [format for format in formats if _fits(text, format)]
        if not formats:
            break
    return formats


def _fits(text: str, format: str) -> bool:
    try:
        datetime.strptime(text.strip(), format)
    except ValueError:
        return False
    return True
