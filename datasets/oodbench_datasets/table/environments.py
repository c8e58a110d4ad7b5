"""Which environment each row is from, and what each environment is for."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.columns import Levels
from oodbench.errors import InvalidSetting, did_you_mean
from oodbench_datasets.table.file import TableFile
from oodbench_datasets.table.ranges import Bins, Range, parse_range, quantile_ranges
from oodbench_datasets.table.text import date_formats

REST = "rest"
MERGED = "small environments"
SHOWN = 20  # names in a message
JOIN = "/"  # between the parts of a name, if several columns make the environment


@dataclass(frozen=True, eq=False)
class Places:
    """The environments of a table, in their order."""

    codes: NDArray[np.int64]  # [row], -1 where there is none
    names: tuple[str, ...]
    numbers: tuple[float, ...]  # what the names stand for, if one column of numbers makes the environment
    unbinned: NDArray[np.bool_]  # [row], whether a number is in no range

    def in_one_of(self, codes: Sequence[int]) -> NDArray[np.bool_]:
        """Which rows are in one of these environments. `np.isin` would take 40 bytes a row, this takes one."""
        wanted = np.zeros(len(self.names) + 1, dtype=bool)  # the last is for rows without an environment
        wanted[list(codes)] = True
        found: NDArray[np.bool_] = wanted[self.codes]
        return found


def find_places(table: TableFile, columns: Sequence[str], bins: Mapping[str, Bins], used: NDArray[np.bool_]) -> Places:
    """`used` are the rows that count: a range must have some of them."""
    unbinned = np.zeros(len(table), dtype=bool)
    parts = []
    for column in columns:
        if column in bins:
            parts.append(_divide(table, bins[column], used))
            unbinned |= (parts[-1].codes < 0) & table.present(column)
        else:
            parts.append(table.levels(column))
    if len(parts) == 1:
        (levels,) = parts
        numbers = tuple(map(float, levels.texts)) if columns[0] not in bins and table.holds_numbers(columns[0]) else ()
        return Places(levels.codes, levels.texts, numbers, unbinned)
    codes = np.stack([part.codes for part in parts], axis=1)  # [row, column]
    whole = (codes >= 0).all(1)
    combined, places = np.unique(codes[whole], axis=0, return_inverse=True)
    joined = np.full(len(table), -1, dtype=np.int64)
    joined[whole] = places.reshape(-1)
    names = [JOIN.join(part.texts[code] for part, code in zip(parts, row, strict=True)) for row in combined]
    return Places(joined, tuple(names), (), unbinned)


def _divide(table: TableFile, bins: Bins, used: NDArray[np.bool_]) -> Levels:
    values = table.numbers(bins.column, "with bins, column")
    ranges: Sequence[Range] | None = bins.ranges
    if bins.quantiles:
        ranges = quantile_ranges(values[used & ~np.isnan(values)], bins.quantiles)
        if ranges is None:
            raise InvalidSetting(
                f"dataset 'table': column {bins.column!r} has too many equal values for {bins.quantiles} quantiles.\n"
                "Ask for fewer, or write the ranges."
            )
    codes = np.full(len(table), -1, dtype=np.int64)
    for code, part in enumerate(ranges or ()):
        inside = part.holds(values)
        if not (inside & used).any():
            raise InvalidSetting(
                f"dataset 'table': no row with a target has {bins.column!r} in the range {part.text}.\n"
                "Leave the range out, or make it wider."
            )
        codes[inside] = code
    return Levels(codes, tuple(part.text for part in ranges or ()))


def assign_roles(
    places: Places, present: Sequence[str], asked: Mapping[str, Sequence[str]], columns: str
) -> dict[str, list[str]]:
    """The environments of each role, of those that are `present`. If nothing is asked to test on, the rest is."""
    asked = dict(asked)
    if not asked["test"] and not any(REST in entries and REST not in present for entries in asked.values()):
        asked["test"] = (REST,)
    roles: dict[str, list[str]] = {role: [] for role in asked}
    role_of: dict[str, str] = {}
    last = None
    for role, entries in asked.items():
        for entry in entries:
            if entry == REST and REST not in present:
                if last is not None:
                    raise InvalidSetting(f"dataset 'table': the rest is both in {last} and in {role}.\nName it once.")
                last = role
                continue
            for name in _match(entry, places, present, columns):
                earlier = role_of.setdefault(name, role)
                if earlier != role:
                    raise InvalidSetting(
                        f"dataset 'table': environment {name!r} is both in {earlier} and in {role}.\nName it once."
                    )
                if name not in roles[role]:
                    roles[role].append(name)
    if last is not None:
        roles[last] += [name for name in present if name not in role_of]
    return roles


def _match(entry: str, places: Places, present: Sequence[str], columns: str) -> list[str]:
    """The environments that an entry means: one by its name, or those of a pattern or a range."""
    if entry in present:
        return [entry]
    matched: list[str] = []
    span = parse_range(entry) if places.numbers else None
    if span is not None:
        inside = span.holds(np.array(places.numbers))
        matched = [name for name, within in zip(places.names, inside, strict=True) if within and name in present]
    elif "*" in entry:
        matched = [name for name in present if fnmatch.fnmatchcase(name, entry)]
    if not matched:
        raise _no_environment(entry, present, columns)
    return matched


def _no_environment(entry: str, present: Sequence[str], columns: str) -> InvalidSetting:
    near = next((f" Did you mean {name!r}?" for name in present if entry in name), did_you_mean(entry, present))
    listed = ", ".join(present[:SHOWN]) + (f" and {len(present) - SHOWN} more" if len(present) > SHOWN else "")
    formats = date_formats(present[:SHOWN])
    remedy = f" They are dates: set dates={columns} and environment='{columns} year' or month." if formats else ""
    return InvalidSetting(
        f"dataset 'table': column {columns!r} has no environment {entry!r}.{near if not formats else ''}\n"
        f"Its environments are: {listed}.{remedy}"
    )


def group_small(names: Sequence[str], small: Sequence[str], how: str) -> dict[str, list[str]]:
    """The environments of a role, each with those that it is made of: small ones stay, are skipped, or are one."""
    if how == "refuse":
        return {name: [name] for name in names}
    groups = {name: [name] for name in names if name not in small}
    merged = [name for name in names if name in small]
    return groups | ({MERGED: merged} if merged and how == "merge" else {})
