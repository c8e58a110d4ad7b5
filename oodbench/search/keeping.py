"""A long training on disk from time to time, beside the results of finished packs: what a lost worker had of its pack.

The worker that runs the pack next goes on from there, if it sees the same disk. A file that somebody else could have
written is not used, as with finished packs (`oodbench.search.ownership`), nor is one that is not whole.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oodbench.engine.checkpoint import Key
from oodbench.engine.keeping import Kept
from oodbench.search.ownership import foreign_folder, read_own
from oodbench.study.directory import write_atomically

SECONDS = 30.0  # of training between two times that it is kept
LEAST_SHARE = 100  # and at least so many times as long as keeping it takes
CHECKSUM_BYTES = hashlib.sha256().digest_size


@dataclass(frozen=True)
class KeepAt:
    path: Path
    seconds: float


class FileKeeper:
    """In a folder that the driver has made: a worker that does not see it, on another node, keeps nothing."""

    def __init__(self, place: KeepAt) -> None:
        self.place = place
        self._due = time.monotonic() + place.seconds if place.path.parent.is_dir() else math.inf

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._due

    def keep(self, make: Callable[[], Kept | None]) -> None:
        started = time.monotonic()
        kept = make()
        if kept is None:  # nor can it be kept later
            self._due = math.inf
            return
        content = kept.to_bytes()
        try:
            write_atomically(self.place.path, hashlib.sha256(content).digest() + content)
        except OSError:  # of a full disk, the driver says so when the pack is finished
            self._due = math.inf
            return
        now = time.monotonic()
        self._due = now + max(self.place.seconds, LEAST_SHARE * (now - started))

    def find(self, trials: tuple[Key, ...]) -> Kept | None:
        try:
            ours, content = read_own(self.place.path)
            if not ours or foreign_folder(self.place.path.parent) is not None:
                return None
        except OSError:  # nothing was kept
            return None
        if hashlib.sha256(content[CHECKSUM_BYTES:]).digest() != content[:CHECKSUM_BYTES]:
            return None
        kept = Kept.from_bytes(content[CHECKSUM_BYTES:])
        return kept if kept.checkpoint.trials == trials else None
