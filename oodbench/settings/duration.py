"""Lengths of time as users write them: 30s, 10m, 2h, or a number of seconds."""

from __future__ import annotations

import re

from oodbench.errors import InvalidSetting

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def parse_duration(value: str | float, option: str) -> float:
    """Seconds, more than none."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([smh]?)", str(value).strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not seconds:
        raise InvalidSetting(f"{option} {value} is not a length of time.\nWrite it as 30s, 10m or 2h.")
    return seconds


def parse_optional(value: str | float | None, option: str) -> float | None:
    return None if value is None else parse_duration(value, option)


def duration_text(seconds: float) -> str:
    """As the user would write it, in the largest unit that leaves a whole number."""
    for unit in ("h", "m"):
        if seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:g}{unit}"
    return f"{seconds:g}s"
