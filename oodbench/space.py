"""Search spaces: what a hyper-parameter may be, its default, and how a value of it is drawn."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oodbench.errors import InvalidSetting

Value = float | int | str | bool


class Dimension(ABC):
    """One hyper-parameter. `searched` is false for options that only the user changes."""

    default: Value
    searched: bool = True

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Value: ...

    @abstractmethod
    def parse(self, value: Any) -> Value:
        """`value` (perhaps text) as a member of this dimension; ValueError if it is none."""

    @property
    def shared(self) -> bool:
        """Whether trials of one pack must agree on the value, which is then not a tensor."""
        return not self.searched or isinstance(self.default, str | bool)


@dataclass(frozen=True)
class _Range(Dimension):
    """Numbers from low to high, both included."""

    low: float
    high: float
    default: float
    searched: bool = True

    def __post_init__(self) -> None:
        _check_default(self)

    def parse(self, value: Any) -> float:
        number = float(value)
        if not self.low <= number <= self.high:
            raise ValueError
        return number


class Uniform(_Range):
    def draw(self, rng: np.random.Generator) -> float:
        return float(rng.uniform(self.low, self.high))

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


class LogUniform(_Range):
    """Uniform on the log scale."""

    def __post_init__(self) -> None:
        if not self.low > 0:
            raise ValueError("LogUniform needs a positive lower end")
        super().__post_init__()

    def draw(self, rng: np.random.Generator) -> float:
        return float(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}, log scale"


class Integer(_Range):
    """Whole numbers."""

    def draw(self, rng: np.random.Generator) -> int:
        return int(rng.integers(int(self.low), int(self.high), endpoint=True))

    def parse(self, value: Any) -> int:
        number = super().parse(value)
        if not number.is_integer():
            raise ValueError
        return int(number)

    def __str__(self) -> str:
        return f"whole numbers {self.low:g} to {self.high:g}"


class Choice(Dimension):
    """One of a few values; the first is the default unless said otherwise."""

    def __init__(self, *values: Value, default: Value | None = None) -> None:
        if not values:
            raise ValueError("Choice needs at least one value")
        self.values = values
        self.default = values[0] if default is None else default
        _check_default(self)

    def draw(self, rng: np.random.Generator) -> Value:
        return self.values[int(rng.integers(len(self.values)))]

    def parse(self, value: Any) -> Value:
        for choice in self.values:
            if value == choice or str(value).lower() == str(choice).lower():
                return choice
            if isinstance(choice, int | float) and not isinstance(choice, bool) and _equals(value, choice):
                return choice
        raise ValueError

    def __str__(self) -> str:
        return "one of " + ", ".join(str(value) for value in self.values)


class Option(Choice):
    """A variant of the method. Never searched: it stays at its default unless the user fixes it."""

    searched = False


Space = Mapping[str, Dimension]


def draw_configuration(
    space: Space, fixed: Mapping[str, Value], entropy: tuple[int, ...], index: int
) -> dict[str, Value]:
    """Configuration `index` of a search: 0 is the defaults, the others are random.

    Each value has a generator of its own, so that neither a longer search nor another dimension changes it.
    """
    values: dict[str, Value] = {}
    for name, dimension in space.items():
        if name in fixed:
            values[name] = fixed[name]
        elif index == 0 or not dimension.searched:
            values[name] = dimension.default
        else:
            values[name] = dimension.draw(np.random.default_rng([*entropy, index, *name.encode()]))
    return values


def parse_value(space: Space, name: str, value: Any, owner: str) -> Value:
    if name not in space:
        known = ", ".join(space) or "none"
        raise InvalidSetting(f"{owner} has no hyper-parameter {name!r}.\nIt has: {known}.")
    try:
        return space[name].parse(value)
    except (ValueError, TypeError, OverflowError):
        raise InvalidSetting(f"{owner}: {name}={value} is outside its range.\nIt may be {space[name]}.") from None


def _equals(text: Any, number: float) -> bool:
    try:
        return float(text) == number
    except (ValueError, TypeError):
        return False


def _check_default(dimension: Dimension) -> None:
    try:
        dimension.parse(dimension.default)
    except ValueError:
        raise ValueError(f"the default {dimension.default!r} is not {dimension}") from None
