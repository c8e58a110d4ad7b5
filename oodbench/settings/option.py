"""Options: fields of a frozen dataclass, each declared once with its flag, help, default and check.

The command line, the functions of the Python interface, the overrides of a suite and the command that repeats a study
are all derived from these fields.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from oodbench.errors import UnknownName, UserError
from oodbench.settings.duration import duration_text, parse_duration

Check = Callable[[Any, str], Any]
"""(value, flag) -> the value to keep; raises UserError where it cannot be."""
Group = TypeVar("Group", bound="Options")
G = TypeVar("G", bound="Options")
P = ParamSpec("P")
A = TypeVar("A")
B = TypeVar("B")
R = TypeVar("R")


@dataclass(frozen=True)
class Flag:
    """How an option is spelled and described on the command line, and what it may be."""

    help: str
    name: str = ""  # of a field `cpus_per_pack`, --cpus-per-pack unless it says otherwise
    short: str = ""  # -m
    metavar: str = ""
    default: str = ""  # in words, where the value itself does not say it
    check: Check | None = None
    text: Callable[[Any], str] = str  # as a user would write the value


def option(
    default: Any,
    help: str,
    *,
    name: str = "",
    short: str = "",
    metavar: str = "",
    default_text: str = "",
    check: Check | None = None,
    text: Callable[[Any], str] = str,
) -> Any:
    """A field of a group of options."""
    flag = Flag(help, name, short, metavar, default_text, check, text)
    return field(default=default, metadata={"flag": flag})


def assignments(help: str, name: str, metavar: str = "NAME=VALUE") -> Any:
    """A field that holds NAME=VALUE pairs; on the command line it may be given several times."""
    flag = Flag(help, name, metavar=metavar, check=lambda value, flag: dict(value or {}))
    return field(default_factory=dict, metadata={"flag": flag})


def like(group: type[Options], name: str, default: Any = None) -> Any:
    """The same option in another group, with another default: None where it then means "not said"."""
    declared, flag = next((declared, flag) for declared, flag in flags_of(group) if declared.name == name)
    check = flag.check
    if declared.default_factory is not dataclasses.MISSING:
        return field(default_factory=declared.default_factory, metadata={"flag": flag})

    def check_if_said(value: Any, said: str) -> Any:
        return value if value is None or check is None else check(value, said)

    return field(default=default, metadata={"flag": dataclasses.replace(flag, check=check_if_said)})


@dataclass(frozen=True, kw_only=True)
class Options:
    """A group of options. Values are checked, and brought into one form, when it is made."""

    def __post_init__(self) -> None:
        for declared, flag in flags_of(type(self)):
            if flag.check is not None:
                object.__setattr__(self, declared.name, flag.check(getattr(self, declared.name), flag.name))

    def part(self, group: type[Group]) -> Group:
        """The options of one of the groups that this one is made of."""
        names = [declared.name for declared in dataclasses.fields(group) if declared.init]
        return group(**{name: getattr(self, name) for name in names})

    def as_words(self, always: tuple[str, ...] = ()) -> list[str]:
        """The words of a command line that say the same: what differs from its default, and `always` these."""
        words: list[str] = []
        for declared, flag in flags_of(type(self)):
            value = getattr(self, declared.name)
            if isinstance(value, Mapping):
                words += [word for key, text in value.items() for word in (flag.name, f"{key}={text}")]
            elif isinstance(value, list | tuple):
                words += [word for text in value for word in (flag.name, str(text))]
            elif value is True:
                words.append(flag.name)
            elif value is not None and (value != declared.default or declared.name in always):
                words += [flag.name, flag.text(value)]
        return words


def flags_of(group: type[Options]) -> Iterator[tuple[dataclasses.Field[Any], Flag]]:
    """The options of a group, in the order in which they are shown."""
    for declared in dataclasses.fields(group):
        flag = declared.metadata.get("flag")
        if flag is not None:
            spelled = flag.name or f"--{declared.name.replace('_', '-')}"
            yield declared, dataclasses.replace(flag, name=spelled)


def takes_options(
    group: Callable[P, G],
) -> Callable[[Callable[[A, G], R]], Callable[Concatenate[A, P], R]]:
    """A function of one argument and a group of options, called with the options as keyword arguments."""

    def decorate(function: Callable[[A, G], R]) -> Callable[Concatenate[A, P], R]:
        @functools.wraps(function)
        def call(first: A, /, *arguments: P.args, **options: P.kwargs) -> R:
            return function(first, group(*arguments, **options))

        _show_signature(call, function, group)
        return call

    return decorate


def takes_two_and_options(
    group: Callable[P, G],
) -> Callable[[Callable[[A, B, G], R]], Callable[Concatenate[A, B, P], R]]:
    """The same for a function of two arguments."""

    def decorate(function: Callable[[A, B, G], R]) -> Callable[Concatenate[A, B, P], R]:
        @functools.wraps(function)
        def call(first: A, second: B, /, *arguments: P.args, **options: P.kwargs) -> R:
            return function(first, second, group(*arguments, **options))

        _show_signature(call, function, group)
        return call

    return decorate


def _show_signature(call: Any, function: Callable[..., Any], group: Callable[..., Any]) -> None:
    """For `help()` and notebooks: the function's own arguments, then the options."""
    own = inspect.signature(function)
    leading = [
        argument.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for argument in list(own.parameters.values())[:-1]
    ]
    call.__signature__ = own.replace(parameters=[*leading, *inspect.signature(group).parameters.values()])


# Checks ------------------------------------------------------------------------------------------------------------


def at_least(least: int, most: int | None = None) -> Check:
    def check(value: int, flag: str) -> int:
        if most is not None and not least <= value <= most:
            raise UserError(f"{flag} must be {least} to {most}, not {value}.")
        if value < least:
            raise UserError(f"{flag} must be at least {least}, not {value}.")
        return value

    return check


def one_of(kind: str, choices: Mapping[str, Any] | tuple[str, ...]) -> Check:
    def check(value: str, flag: str) -> str:
        if value not in choices:
            raise UnknownName(kind, value, choices)
        return value

    return check


def above_zero(value: float | None, flag: str) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise UserError(f"{flag} must be above 0, not {value:g}.")
    return value


def seconds(value: str | float | None, flag: str) -> float | None:
    return None if value is None else parse_duration(value, flag)


def seconds_text(value: Any) -> str:
    return duration_text(float(value))
