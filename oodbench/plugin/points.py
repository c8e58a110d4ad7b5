"""Entry points of installed distributions, read once for as long as the same distributions are installed.

A scan reads a file of every distribution, and a run asks for some thirty plug-ins.
"""

from __future__ import annotations

import functools
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path


def points(kind: str) -> list[EntryPoint]:
    """Those of a kind of plug-in, in the order of the path."""
    return list(_scan(f"oodbench.{kind}s", tuple((folder, _changed(folder)) for folder in sys.path)))


@functools.lru_cache(maxsize=8)
def _scan(group: str, folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def _changed(folder: str) -> int:
    """An installer adds or removes an entry of the folder, which changes its time."""
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0
