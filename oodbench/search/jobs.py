"""A pack with all that its worker needs to run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oodbench.engine.trial import Setup
from oodbench.plugin.method import Method
from oodbench.study.data import SearchData
from oodbench.study.pack import Pack

WHOLE = -1  # instead of a position in a pack


@dataclass(frozen=True, eq=False)
class Job:
    """A pack with all that its worker needs to run it."""

    pack: Pack
    method: Method
    setup: Setup
    data: Mapping[int, SearchData]  # by seed
