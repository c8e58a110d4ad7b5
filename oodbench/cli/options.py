"""Command line options from groups of options: spelled, described and converted as the groups declare them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from oodbench.settings.fields import split_assignments
from oodbench.settings.option import Flag, Options, flags_of

Given = dict[str, Any]
"""What the user said, by the name of the field; what was left out is not in it."""


def with_options(*groups: type[Options], leave_out: Sequence[str] = ()) -> Callable[[Callable[..., None]], Any]:
    """A command whose first parameter gets what was said of the options of these groups; others are typer's as usual.

    Of an option that several groups have, the last one says its default in words. No default is given to the command:
    the groups have them, and a suite may say otherwise.
    """
    declared = {
        field.name: (group, field, flag)
        for group in groups
        for field, flag in flags_of(group)
        if field.name not in leave_out
    }

    def decorate(command: Callable[..., None]) -> Any:
        own = inspect.signature(command, eval_str=True)
        parameters = list(own.parameters.values())[1:]
        added = [_parameter(group, field) for group, field, _ in declared.values()]

        @functools.wraps(command)
        def call(**arguments: Any) -> None:
            values = {name: arguments.pop(name) for name in declared}
            given = {
                name: _convert(value, declared[name][2], get_type_hints(declared[name][0])[name])
                for name, value in values.items()
                if value is not None and value is not False and value != []  # 0 is a number, and refused as one
            }
            command(given, **arguments)

        ordered = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*added, *parameters)]
        call.__signature__ = own.replace(parameters=ordered)  # type: ignore[attr-defined]
        call.__annotations__ = {}
        return call

    return decorate


def spelled(group: type[Options], names: Collection[str]) -> dict[str, object]:
    """The flags of what was said, whatever was said, in the order of the group."""
    return {flag.name: True for field, flag in flags_of(group) if field.name in names}


def typer_option(group: type[Options], name: str) -> Any:
    """The option as typer takes it in an annotation."""
    field, flag = next((field, flag) for field, flag in flags_of(group) if field.name == name)
    default = flag.default or ("" if field.default in (None, False, MISSING, ()) else flag.text(field.default))
    help = flag.help + (f" [dim]\\[default: {default}][/dim]" if default else "")
    names = [flag.name] + ([flag.short] if flag.short else [])
    return typer.Option(*names, help=help, metavar=flag.metavar or None, show_default=False)


def _parameter(group: type[Options], field: Field[Any]) -> inspect.Parameter:
    kind = _kind(get_type_hints(group)[field.name])
    info = typer_option(group, field.name)
    empty = False if kind is bool else None
    annotation = getitem(Annotated, (kind if kind is bool else kind | None, info))  # at run time, unlike Annotated[...]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=empty, annotation=annotation)


def _kind(hint: Any) -> Any:
    """What typer reads: of a time or a path that may be text, the more general."""
    if _is(hint, Mapping) or _is(hint, Sequence):
        return list[str]
    for kind in (bool, int, Path, str, float):
        if hint is kind or kind in get_args(hint):
            return kind
    return str  # a literal


def _is(hint: Any, kind: Any) -> bool:
    return getattr(hint, "__origin__", None) is kind


def _convert(value: Any, flag: Flag, hint: Any) -> Any:
    return split_assignments(value, flag.name) if _is(hint, Mapping) else value
