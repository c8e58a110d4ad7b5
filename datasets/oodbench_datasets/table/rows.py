"""Which rows of a table are wanted: conditions on its columns, such as age>=18 or state=MA|NY."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import UnknownName
from oodbench_datasets.table.file import TableFile
from oodbench_datasets.table.target import COMPARE, NUMBER

CONDITION = re.compile(r"([^<>=!]+)(>=|<=|!=|=|>|<)(.+)")


@dataclass(frozen=True)
class Condition:
    column: str
    sign: str
    values: tuple[str, ...]

    def holds(self, table: TableFile) -> NDArray[np.bool_]:
        """In which rows; in none where the value is missing."""
        if self.sign in COMPARE:
            numbers = table.numbers(self.column, "in where, column")
            holds: NDArray[np.bool_] = COMPARE[self.sign](numbers, float(self.values[0]))
            return holds
        levels = table.levels(self.column)
        for value in self.values:
            if value not in levels.texts:
                raise UnknownName(f"value of column {self.column!r}", value, levels.texts[:20])
        named = np.isin(levels.codes, [levels.texts.index(value) for value in self.values])
        return (named if self.sign == "=" else ~named) & (levels.codes >= 0)


def parse_conditions(texts: Sequence[str]) -> list[Condition]:
    conditions = []
    for text in texts:
        match = CONDITION.fullmatch(text)
        values = tuple(value.strip() for value in match[3].split("|")) if match else ()
        if match and (match[2] not in COMPARE or (re.fullmatch(NUMBER, values[0]) and len(values) == 1)):
            conditions.append(Condition(match[1].strip(), match[2], values))
            continue
        raise ValueError(f"where={text} cannot be read.\nWrite conditions such as age>=18, state=MA|NY or job!=cook.")
    return conditions


def wanted_rows(table: TableFile, conditions: Sequence[Condition]) -> NDArray[np.bool_]:
    """Those in which every condition holds."""
    wanted = np.ones(len(table), dtype=bool)
    for condition in conditions:
        wanted &= condition.holds(table)
    return wanted
