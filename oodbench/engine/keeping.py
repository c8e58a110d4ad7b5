"""What is kept of a long training from time to time, so that another process can go on with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from oodbench.engine.checkpoint import Checkpoint, Key

COUNT = 8  # bytes of a number


@dataclass(frozen=True, eq=False)
class Kept:
    checkpoint: Checkpoint
    gradient_steps: int  # that this training has counted so far
    row_visits: int

    def to_bytes(self) -> bytes:
        counts = (self.gradient_steps, self.row_visits)
        return b"".join(count.to_bytes(COUNT, "little") for count in counts) + self.checkpoint.to_bytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> Kept:
        steps, visits = (int.from_bytes(content[place : place + COUNT], "little") for place in (0, COUNT))
        return cls(Checkpoint.from_bytes(content[2 * COUNT :]), steps, visits)


class Keeper(Protocol):
    @property
    def is_due(self) -> bool: ...

    def keep(self, make: Callable[[], Kept | None]) -> None: ...

    def find(self, trials: tuple[Key, ...]) -> Kept | None:
        """What was kept of a training of these very trials."""
