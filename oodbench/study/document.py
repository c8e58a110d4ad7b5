"""Documents that oodbench writes and reads again: a frozen dataclass as JSON, with the number of its schema.

Reading is strict: every field is there, none is unknown, each has its type. Nothing is guessed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import TypeAdapter

T = TypeVar("T", bound="DataclassInstance")
MOST_DIGITS = 300  # of a whole number; one with more does not fit into a float


class Damaged(ValueError):
    """A document is not what oodbench wrote; the message says in what."""


class OtherSchema(ValueError):
    """A document that another version of oodbench wrote."""


def write_document(document: DataclassInstance) -> bytes:
    return json.dumps(asdict(document), indent=2, ensure_ascii=False, default=_plain).encode()


def read_document(kind: type[T], content: bytes, schema: int) -> T:
    """The document as it was written. Raises `OtherSchema`, or `Damaged` with what is wrong."""
    from pydantic import ValidationError

    try:
        given = json.loads(content, parse_int=_whole_number)
    except Damaged:
        raise
    except (ValueError, RecursionError):  # no JSON, or no text
        raise Damaged("it is not JSON") from None
    if not isinstance(given, dict) or not isinstance(given.get("schema"), int):
        raise Damaged("it has no schema number")
    if given["schema"] != schema:
        raise OtherSchema(f"it has schema {given['schema']}, and this version reads schema {schema}")
    try:
        document = _adapter(kind).validate_json(content, strict=True)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"])) or "the whole"
        raise Damaged(f"{place}: {fault['msg'][0].lower()}{fault['msg'][1:]}") from None
    assert isinstance(document, kind)
    difference = _difference(given, asdict(document), "")
    if difference:
        raise Damaged(difference)
    return document


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    assert is_dataclass(kind)
    return TypeAdapter(kind)


def _difference(given: Any, understood: Any, place: str) -> str:
    """The first field that is in one and not in the other: pydantic passes over the unknown and fills in defaults."""
    if isinstance(given, Mapping) and isinstance(understood, Mapping):
        fields = {str(name): value for name, value in understood.items()}  # keys of JSON are texts
        for name in given:
            if name not in fields:
                return f"it has the unknown field {place + name!r}"
        for name in fields:
            if name not in given:
                return f"it lacks the field {place + name!r}"
        deeper = [(given[name], fields[name], f"{place}{name}.") for name in fields]
    elif isinstance(given, list) and isinstance(understood, list | tuple):
        deeper = [(*pair, f"{place}{index}.") for index, pair in enumerate(zip(given, understood, strict=True))]
    else:
        return ""
    return next(filter(None, (_difference(*inner) for inner in deeper)), "")


def _whole_number(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise Damaged(f"it has a number of {len(text)} digits")
    return int(text)


def _plain(value: Any) -> Any:
    """What JSON does not know: times, and numbers of numpy."""
    return value.isoformat() if isinstance(value, datetime) else value.item()
