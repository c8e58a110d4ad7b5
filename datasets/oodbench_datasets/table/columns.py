"""Columns that are made when they are asked for: all of them at once take as much memory as the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


class ColumnsOnDemand(Mapping[str, T]):
    def __init__(self, names: Sequence[str], make: Callable[[str], T]) -> None:
        self.names, self.make = names, make

    def __getitem__(self, name: str) -> T:
        return self.make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
