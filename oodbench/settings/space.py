"""Search spaces: what a hyper-parameter may be, its default, and how a value of it is drawn."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oodbench.errors import InvalidSetting

Value = float | int | str | bool


@dataclass(frozen=True)
class OneEach:
    """A value for every configuration, in their order. The first values of several hyper-parameters go together."""

    values: tuple[Value, ...]


Fixed = Value | tuple[Value, ...] | OneEach
"""A hyper-parameter that the user decided on: its value, the only values to search, or one for each configuration."""


class Dimension(ABC):
    """One hyper-parameter. `searched` is false for options that only the user changes."""

    default: Value
    searched: bool = True

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Value: ...

    @abstractmethod
    def parse(self, value: Any) -> Value:
        """`value` (perhaps text) as a member of this dimension; ValueError if it is none."""

    def parse_listed(self, value: Any) -> Value:
        """The same of a value that is listed for one configuration: where only a search has ends, others may do."""
        return self.parse(value)

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
    """Numbers between two ends, both included.

    Examples:
        >>> space = {"dropout": Uniform(0.0, 0.5, default=0.1)}
    """

    def draw(self, rng: np.random.Generator) -> float:
        return float(rng.uniform(self.low, self.high))

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


class LogUniform(_Range):
    """Uniform on the log scale: for what spans orders of magnitude.

    Examples:
        >>> space = {"penalty": LogUniform(1e-3, 1e1, default=0.1)}
    """

    def __post_init__(self) -> None:
        if not self.low > 0:
            raise ValueError("LogUniform needs a positive lower end")
        super().__post_init__()

    def parse_listed(self, value: Any) -> float:
        number = float(value)
        if not 0 < number < math.inf:
            raise ValueError
        return number

    def draw(self, rng: np.random.Generator) -> float:
        return float(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}, log scale"


class Integer(_Range):
    """Whole numbers between two ends, both included.

    Examples:
        >>> space = {"clusters": Integer(2, 5, default=2)}
    """

    def draw(self, rng: np.random.Generator) -> int:
        return int(rng.integers(int(self.low), int(self.high), endpoint=True))

    def parse(self, value: Any) -> int:
        number = super().parse(value)
        if not number.is_integer():
            raise ValueError
        return int(number)

    def __str__(self) -> str:
        return f"whole numbers {self.low:g} to {self.high:g}"


class LogInteger(Integer):
    """Whole numbers, uniform on the log scale.

    Examples:
        >>> space = {"leaves": LogInteger(2, 200, default=31)}
    """

    def __post_init__(self) -> None:
        if not self.low > 0:
            raise ValueError("LogInteger needs a positive lower end")
        super().__post_init__()

    def draw(self, rng: np.random.Generator) -> int:
        drawn = math.exp(rng.uniform(math.log(self.low), math.log(self.high + 1)))
        return int(min(drawn, self.high))  # the upper end has as wide a share as its neighbours

    def __str__(self) -> str:
        return f"whole numbers {self.low:g} to {self.high:g}, log scale"


class Choice(Dimension):
    """One of a few values; the first is the default unless said otherwise.

    Examples:
        >>> space = {"anneal": Choice(0, 100, 500, default=100)}
    """

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

    def parse_listed(self, value: Any) -> Value:
        """Between the least and any number above, of a choice of fractions such as weight decays."""
        if not all(isinstance(choice, float) for choice in self.values):
            return self.parse(value)
        number = float(value)
        if not min(map(float, self.values)) <= number < math.inf:
            raise ValueError
        return number

    def __str__(self) -> str:
        return "one of " + ", ".join(str(value) for value in self.values)


class Option(Choice):
    """A variant of the method. Never searched: it stays at its default unless the user fixes it.

    Examples:
        >>> space = {"divergence": Option("cvar", "chi_square")}
    """

    searched = False


Space = Mapping[str, Dimension]

RANGES: dict[str, type[_Range]] = {"float": Uniform, "log": LogUniform, "int": Integer, "logint": LogInteger}


def parse_dimension(name: str, asked: Any, usual: Any) -> Dimension:
    """A dimension as a user writes it: int:2:20, logint, float, log; or values, as a list or with commas.

    Its default is the `usual` value if that is one of its values, else the middle of a range or the first value.
    """
    kind, _, ends = asked.partition(":") if isinstance(asked, str) else ("", "", "")
    try:
        if kind in RANGES and ends:
            low, high = map(float, ends.split(":"))
            middle = math.sqrt(low * high) if kind.startswith("log") else (low + high) / 2
            middle = round(middle) if kind.endswith("int") else middle
            dimension = RANGES[kind](low, high, default=middle)
            return dimension if not _has(dimension, usual) else RANGES[kind](low, high, default=dimension.parse(usual))
        values = asked.split(",") if isinstance(asked, str) else asked if isinstance(asked, list) else [asked]
        choice = Choice(*(_plain_value(value) for value in values if value != ""))
        return choice if not _has(choice, usual) else Choice(*choice.values, default=choice.parse(usual))
    except (ValueError, OverflowError):
        raise InvalidSetting(
            f"space of {name}: {asked!r} is no range.\n"
            f"Write {name}=int:2:20, logint:1:64, float:0:1, log:1e-4:1, or values with commas."
        ) from None


def _has(dimension: Dimension, value: Any) -> bool:
    try:
        dimension.parse(value)
    except (ValueError, TypeError):
        return False
    return not isinstance(value, bool) or isinstance(dimension, Choice)


def _plain_value(value: Any) -> Value:
    """A number or truth value where the text is one."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    text = value.strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def restrict_space(space: Space, fixed: Mapping[str, Fixed]) -> Space:
    """The space that is left to search where some hyper-parameters may only have certain values."""
    return {
        name: _among(dimension, fixed[name]) if isinstance(fixed.get(name), tuple) else dimension
        for name, dimension in space.items()
    }


def enumerate_configurations(space: Space, fixed: Mapping[str, Value], most: int) -> list[dict[str, Value]] | None:
    """Every configuration of a space that has no more than `most`, the defaults first; None if it has more."""
    values: list[list[Value]] = []
    for name, dimension in space.items():
        if name in fixed or not dimension.searched:
            values.append([fixed.get(name, dimension.default)])
        elif isinstance(dimension, Choice):
            values.append([dimension.default, *(value for value in dimension.values if value != dimension.default)])
        else:
            return None
    if math.prod(len(choices) for choices in values) > most:
        return None
    return [dict(zip(space, point, strict=True)) for point in itertools.product(*values)]


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
        names = ", ".join(space) or "none"
        raise InvalidSetting(f"{owner} has no hyper-parameter {name!r}.\nIt has: {names}.")
    try:
        return space[name].parse(value)
    except (ValueError, TypeError, OverflowError):
        raise InvalidSetting(f"{owner}: {name}={value} is outside its range.\nIt may be {space[name]}.") from None


def _parse_listed(space: Space, name: str, value: str, owner: str) -> Value:
    try:
        return space[name].parse_listed(value)
    except (KeyError, ValueError):
        return parse_value(space, name, value, owner)  # says what is wrong


def parse_fixed(space: Space, name: str, value: Any, owner: str) -> Fixed:
    """One value, or several: a list, or text with commas; one for each configuration: text with semicolons."""
    several = value
    if isinstance(value, str) and ";" in value:
        return OneEach(tuple(_parse_listed(space, name, part.strip(), owner) for part in value.split(";")))
    if isinstance(value, str) and "," in value:
        several = [part.strip() for part in value.split(",")]
    if not isinstance(several, list | tuple):
        return parse_value(space, name, value, owner)
    if not several:
        raise InvalidSetting(f"{owner}: {name} has no value.\nGive one or more, for example {name}=1,10.")
    parsed = tuple(dict.fromkeys(parse_value(space, name, part, owner) for part in several))
    return parsed if len(parsed) > 1 else parsed[0]


def fixed_text(value: Fixed) -> str:
    """As the user would write it: 0.1, or 0.1,1,10, or 0.1;1;10."""
    if isinstance(value, OneEach):
        return ";".join(fixed_text(part) for part in value.values)
    if isinstance(value, tuple):
        return ",".join(fixed_text(part) for part in value)
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _among(dimension: Dimension, values: Fixed) -> Choice:
    assert isinstance(values, tuple)
    return Choice(*values, default=dimension.default if dimension.default in values else None)


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
