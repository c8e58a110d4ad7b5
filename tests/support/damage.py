"""Damage to files: bytes flipped, cut, doubled, and values of JSON, TOML, CSV and Parquet replaced. Seeded."""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Callable
from typing import Any

Damage = Callable[[bytes, random.Random], bytes]

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 10**6, 10**30, -(2**63) - 1, 0.5, -0.0, 1e308, float("nan"), float("inf"), "",
    " ", "0", "nan", "x", "é", "\ud800", "a\nb", "a\0b", "../../x", "/dev/zero", "[bold]", "</script>", "2026-01-02",
    "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-23:59", "test", "FAILED", "classification", "oracle", "erm",
    "x" * 5000, [], [[]], {}, {"": {}}, [0], [1, 2, 3], ["x"], {"x": 1}, {"0": 0.1}, [None],
]  # fmt: skip
LITERALS = [
    "0", "-1", "2.5", "inf", "nan", "true", '""', '"erm"', '"x y"', "[]", "{}", "[[]]", "[{}]", "1979-05-27",
    "07:32:00", "9" * 40, '"../../x"', '"/dev/null"', '"\\u0000"', "{ a = 1 }", '["erm", 1]', '"selection_bias"', "'",
    '"""', "0x", "[{ r1 = 1.5 }, 3]", "{ r1 = [] }",
]  # fmt: skip


def damage_bytes(content: bytes, draw: random.Random) -> bytes:
    """One to three faults of a disk, a transfer or an editor."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        size = len(changed)
        start = draw.randrange(size + 1)
        stop = min(size, start + draw.choice((1, 1, 2, 4, 16, 64, size)))
        kind = draw.choice(("flip", "flip", "set", "cut", "delete", "double", "insert", "move"))
        if kind == "flip" and size:
            for _ in range(draw.choice((1, 1, 4, 16))):
                changed[draw.randrange(size)] ^= 1 << draw.randrange(8)
        elif kind == "set":
            changed[start:stop] = bytes([draw.choice(b'\x00\xff"{}[]:,=\n\r\t\\ -9e')]) * (stop - start)
        elif kind == "cut":
            del changed[start:]
        elif kind == "delete":
            del changed[start:stop]
        elif kind == "double":
            changed[start:start] = changed[start:stop]
        elif kind == "insert":
            changed[start:start] = draw.randbytes(draw.choice((1, 4, 64)))
        else:
            piece = changed[start:stop]
            del changed[start:stop]
            place = draw.randrange(len(changed) + 1)
            changed[place:place] = piece
    return bytes(changed)


def damage_json(content: bytes, draw: random.Random) -> bytes:
    """Other values, keys too many or too few, in a file that is JSON still."""
    document = json.loads(content)
    for _ in range(draw.choice((1, 1, 2))):
        document = _changed(document, draw)
    return json.dumps(document).encode("utf-8", "surrogatepass")


def _changed(document: Any, draw: random.Random) -> Any:
    places = list(_places(document))
    if not places:
        return draw.choice(VALUES)
    holder, key = draw.choice(places)
    kind = draw.choice(("replace", "replace", "replace", "other", "delete", "rename", "double", "wrap"))
    if kind == "replace":
        holder[key] = copy.deepcopy(draw.choice(VALUES))
    elif kind == "other":
        there, name = draw.choice(places)
        holder[key] = copy.deepcopy(there[name])
    elif kind == "delete":
        del holder[key]
    elif kind == "wrap":
        holder[key] = [holder[key]]
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif kind == "rename":
        holder[draw.choice(("", "x", "0", f"{key} ", "schema", "id"))] = holder.pop(key)
    else:
        holder[f"{key}2"] = copy.deepcopy(holder[key])
    return document


def _places(document: Any) -> Any:
    """All of it that can be changed: what holds it, and where."""
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(pairs):
        yield document, key
        if isinstance(value, dict | list):
            yield from _places(value)


def damage_lines(content: bytes, draw: random.Random) -> bytes:
    """Lines `key = value` with other values, and lines that are missing, doubled, moved or cut."""
    lines = content.decode().splitlines()
    for _ in range(draw.choice((1, 1, 2, 3))):
        place = draw.randrange(len(lines)) if lines else 0
        key, equals, _ = lines[place].partition(" = ") if lines else ("", "", "")
        kind = draw.choice(("value", "value", "value", "key", "drop", "double", "cut"))
        if not lines:
            lines.append(draw.choice(LITERALS))
        elif kind == "value":
            lines[place] = f"{key} = {draw.choice(LITERALS)}" if equals else draw.choice(LITERALS)
        elif kind == "key":
            lines[place] = draw.choice(lines).partition(" = ")[0] + " = " + lines[place].partition(" = ")[2]
        elif kind == "drop":
            del lines[place]
        elif kind == "double":
            lines.insert(draw.randrange(len(lines) + 1), lines[place])
        else:
            lines[place] = lines[place][: draw.randrange(len(lines[place]) + 1)]
    return "\n".join(lines).encode()


def damage_csv(content: bytes, draw: random.Random) -> bytes:
    """Fields with other contents, columns that are missing, doubled or shifted."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    for _ in range(draw.choice((1, 1, 2, 8))):
        row = draw.choice(rows)
        column = draw.randrange(len(row)) if row else 0
        kind = draw.choice(("field", "field", "field", "column", "drop", "double", "rows"))
        text = str(draw.choice(VALUES)).encode(errors="replace").decode()
        if kind == "field" and row:
            row[column] = text
        elif kind == "column":  # of all rows but the first
            for other in rows[1:]:
                if column < len(other):
                    other[column] = text
        elif kind == "drop":
            for other in rows if draw.random() < 0.5 else [row]:
                del other[column : column + 1]
        elif kind == "double":
            for other in rows if draw.random() < 0.5 else [row]:
                other[column:column] = other[column : column + 1]
        else:
            rows = rows[: draw.randrange(len(rows)) + 1]
    return "\n".join(",".join(row) for row in rows).encode()


def damage_parquet(content: bytes, draw: random.Random) -> bytes:
    """Another table in a whole Parquet file: columns of other types, other values, other rows."""
    import pandas as pd

    table = pd.read_parquet(io.BytesIO(content))
    for _ in range(draw.choice((1, 1, 2))):
        column = draw.choice(list(table.columns)) if len(table.columns) else "x"
        row = draw.randrange(len(table)) if len(table) else 0
        kind = draw.choice(("value", "value", "value", "column", "drop", "rename", "rows", "double", "none", "type"))
        if kind == "value" and len(table):
            values = list(table[column])
            values[row] = draw.choice(
                [one for one in VALUES if type(one) is type(values[row]) and one != "\ud800"] or [None]
            )
            table[column] = values
        elif kind == "column":
            table[column] = [draw.choice([0, -1, 0.5, "x", True, None, float("inf")])] * len(table)
        elif kind == "drop":
            table = table.drop(columns=column)
        elif kind == "rename":
            table = table.rename(columns={column: draw.choice(("x", "", "error"))})
            table = table.loc[:, ~table.columns.duplicated()]
        elif kind == "rows":
            table = table.sample(n=draw.randrange(len(table) + 1), random_state=draw.randrange(2**31))
        elif kind == "double":
            table = pd.concat([table, table.iloc[: row + 1]], ignore_index=True)
        elif kind == "none":
            table = table.iloc[:0]
        else:
            table[column] = table[column].astype(draw.choice(("str", "object", "category")))
    written = io.BytesIO()
    try:
        table.to_parquet(written, index=False)
    except Exception:  # no file can hold such a column
        return content[: draw.randrange(len(content))]
    return written.getvalue()


def damage_safetensors(content: bytes, draw: random.Random) -> bytes:
    """Other words in the header, which has its length before it and the arrays behind it."""
    length = int.from_bytes(content[:8], "little")
    header = damage_json(content[8 : 8 + length], draw)
    return len(header).to_bytes(8, "little") + header + content[8 + length :]
