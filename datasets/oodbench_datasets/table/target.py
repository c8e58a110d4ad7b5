"""The target of a table: numbers to predict, or classes."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.data import Task
from oodbench.errors import InvalidSetting, UnknownName
from oodbench_datasets.table.file import TableFile

MOST_CLASSES = 100
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
BOUND = re.compile(rf"(>=|<=|>|<)\s*({NUMBER})")
COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


@dataclass(frozen=True, eq=False)
class Target:
    task: Task
    y: NDArray[Any]  # [row]
    classes: tuple[str, ...]  # empty for regression


def parse_bound(positive: str) -> tuple[str, float] | None:
    """`>20` as a comparison and a number; None for anything that does not begin like one."""
    if positive[:1] not in ("<", ">"):
        return None
    match = BOUND.fullmatch(positive)
    if match:
        return match[1], float(match[2])
    raise ValueError(
        f"positive={positive} cannot be read.\nWrite a bound such as >20 or <=0.5, or a value of the target."
    )


def find_target(table: TableFile, name: str, pool: NDArray[np.int64], problem: str, positive: str) -> Target:
    """No target is missing in these rows. What classes there are, `pool` says: rows of the training environments."""
    bound = parse_bound(positive)
    if bound is not None:
        compare, limit = bound
        y = COMPARE[compare](table.numbers(name, "with a bound in positive, the target"), limit).astype(np.int64)
        _check_classes(name, np.unique(y[pool]), f" {positive}")
        return Target("classification", y, (f"not {positive}", positive))
    if positive:
        levels = table.levels(name)
        if positive not in levels.texts:
            raise UnknownName(f"value of target {name!r}", positive, levels.texts[:MOST_CLASSES])
        y = (levels.codes == levels.texts.index(positive)).astype(np.int64)
        _check_classes(name, np.unique(y[pool]), f" = {positive}")
        return Target("classification", y, (f"not {positive}", positive))
    if problem == "regression" or (problem == "auto" and _is_quantity(table, name)):
        numbers = table.numbers(name, "for regression, the target")
        if np.ptp(numbers[pool]) == 0:
            raise InvalidSetting(
                f"dataset 'table': target {name!r} is always {numbers[pool][0]:g} in the training environments.\n"
                "Train on environments where it varies, or choose another target."
            )
        return Target("regression", numbers, ())
    levels = table.levels(name)
    trained = np.unique(levels.codes[pool])
    _check_classes(name, trained, "")
    if len(trained) > MOST_CLASSES:
        raise InvalidSetting(
            f"dataset 'table': target {name!r} has {len(trained)} distinct values, too many for classes.\n"
            "Choose another target, task=regression, or a bound such as positive=>20."
        )
    beyond = sorted(set(np.unique(levels.codes)) - set(trained))
    if beyond:
        value = levels.texts[beyond[0]]
        condition = f"with where={name}!={value}" if value.isprintable() else "of the file"
        raise InvalidSetting(
            f"dataset 'table': target {name!r} is {value!r} in a test environment, never in training.\n"
            f"Leave such rows out {condition}, or define two classes with positive."
        )
    return Target(
        "classification", np.searchsorted(trained, levels.codes), tuple(levels.texts[code] for code in trained)
    )


def _is_quantity(table: TableFile, name: str) -> bool:
    """Numbers of more than two kinds; two kinds are classes, whatever they are called."""
    return table.holds_numbers(name) and table.count_distinct(name) > 2


def _check_classes(name: str, present: NDArray[np.int64], condition: str) -> None:
    if len(present) < 2:
        how = (
            f"{name}{condition} is always {'true' if present[0] else 'false'}"
            if condition
            else f"{name!r} has one value"
        )
        raise InvalidSetting(
            f"dataset 'table': the target has one class: {how} in the training environments.\n"
            "Train on environments that have two, or choose another target or bound."
        )
