"""Levels in an order, as a user writes it: size=small<medium<large."""

from __future__ import annotations

from collections.abc import Sequence


def parse_ordinals(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The levels of each column, in their order."""
    ordinals: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, _, order = text.partition("=")
        levels = tuple(level.strip() for level in order.split("<"))
        if not name.strip() or len(levels) < 2 or "" in levels or len(set(levels)) < len(levels):
            raise ValueError(f"ordinal={text} cannot be read.\nWrite it as size=small<medium<large, each level once.")
        if name.strip() in ordinals:
            raise ValueError(f"ordinal names column {name.strip()!r} twice.\nName it once.")
        ordinals[name.strip()] = levels
    return ordinals
