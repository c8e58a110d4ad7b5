"""Named, typed settings: the fields of a frozen dataclass, readable from `name=value` text.

Datasets, model families and the training recipe are all configured this way, so that `--set`, `--set-model`
and `--set-training` behave alike and every one of them can describe itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from oodbench.errors import InvalidSetting, UserError

T = TypeVar("T")
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def setting(default: Any, help: str, name: str = "", *, named: bool = True) -> Any:
    """One setting of a dataset, model family or recipe: its default and what it means.

    The user knows it by the name of the field, or by `name` where a field cannot have it: Dataset.train is a method.
    A setting that is not `named` is left out of the names of results: the dataset's `variant` says what it came to.

    Examples:
        >>> rows: int = setting(1000, "rows of each environment")
    """
    return dataclasses.field(default=default, metadata={"help": help, "name": name, "named": named})


def split_assignment(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip() and value.strip()):
        raise InvalidSetting(f"{option} {text!r} cannot be read.\nWrite it as NAME=VALUE, for example r1=1.9.")
    return name.strip(), value.strip()


def split_assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    return dict(split_assignment(text, option) for text in texts)


def configure(cls: type[T], values: Mapping[str, Any], owner: str, base: T | None = None) -> T:
    """An instance of `cls` (or of `base`, changed) with `values`, which may be text or already typed."""
    types = get_type_hints(cls)
    fields = {_name(field): field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    typed = {}
    for name, value in values.items():
        if name not in fields:
            raise InvalidSetting(f"{owner} has no setting {name!r}.\nIt has: {describe_briefly(cls)}.")
        kind = types[fields[name]]
        try:
            typed[fields[name]] = _convert(kind, value)
        except (ValueError, TypeError):
            raise InvalidSetting(
                f"{owner}: {name}={_as_text(value)} is not {type_name(kind)}.\nIt has: {describe_briefly(cls)}."
            ) from None
    try:
        return dataclasses.replace(base, **typed) if base is not None else cls(**typed)  # type: ignore[type-var]
    except UserError:
        raise
    except ValueError as error:  # what a plug-in's own __post_init__ says of a value out of range
        raise InvalidSetting(f"{owner}: {error}") from None


def as_dict(instance: Any) -> dict[str, Any]:
    return {_name(field): getattr(instance, field.name) for field in dataclasses.fields(instance)}


def as_texts(instance: Any) -> dict[str, str]:
    """As `configure` reads them."""
    return {name: _as_text(value) for name, value in as_dict(instance).items()}


def describe_settings(cls: type[Any]) -> list[tuple[str, str, str, str]]:
    """(name, type, default, help) of every setting."""
    types = get_type_hints(cls)
    return [
        (_name(field), type_name(types[field.name]), _as_text(field.default), field.metadata.get("help", ""))
        for field in dataclasses.fields(cls)
    ]


def describe_briefly(cls: type[Any]) -> str:
    return ", ".join(f"{name}={default}" for name, _, default, _ in describe_settings(cls)) or "no settings"


def changed(instance: Any) -> dict[str, str]:
    """The named settings that differ from their defaults, as text: the short name of an instance."""
    return {
        _name(field): _as_text(getattr(instance, field.name))
        for field in dataclasses.fields(instance)
        if getattr(instance, field.name) != field.default and field.metadata.get("named", True)
    }


def changed_from(instance: Any, usual: Any) -> dict[str, str]:
    """All settings, named or not, that differ from those of another instance, as text."""
    usual_values = as_dict(usual)
    return {name: _as_text(value) for name, value in as_dict(instance).items() if value != usual_values[name]}


def type_name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a list of {get_args(kind)[0].__name__} values, separated by commas"
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(type_name(part) for part in get_args(kind))
    return {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a text",
        NoneType: "none",
    }.get(kind, str(kind))


def _name(field: dataclasses.Field[Any]) -> str:
    return field.metadata.get("name") or field.name


def _as_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(_as_text(part) for part in value)
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _convert(kind: Any, value: Any) -> Any:
    """The value as that kind; ValueError or TypeError where it is none."""
    origin = get_origin(kind)
    if origin is Literal:
        return _first(choice for choice in get_args(kind) if str(choice) == str(value))
    if origin in (Union, UnionType):
        return _first(_convertible(get_args(kind), value))
    if origin is tuple:
        return tuple(_convert(get_args(kind)[0], part) for part in _parts(value))
    return _PLAIN[kind](value) if kind in _PLAIN else kind(value)


def _first(values: Iterator[Any]) -> Any:
    for value in values:
        return value
    raise ValueError


def _convertible(kinds: Iterable[Any], value: Any) -> Iterator[Any]:
    for kind in kinds:
        with contextlib.suppress(ValueError, TypeError):
            yield _convert(kind, value)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")] if value.strip() else []
    return [value] if isinstance(value, int | float) else value


def _boolean(value: Any) -> bool:
    if str(value).lower() not in _BOOLEANS:
        raise ValueError
    return _BOOLEANS[str(value).lower()]


def _none(value: Any) -> None:
    if value is not None and str(value).lower() != "none":
        raise ValueError


def _whole_number(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError
    return int(value)


def _finite_number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


_PLAIN: dict[Any, Callable[[Any], Any]] = {
    bool: _boolean,
    NoneType: _none,
    int: _whole_number,
    float: _finite_number,
}
