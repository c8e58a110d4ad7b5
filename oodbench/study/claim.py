"""One driver at a time works on a study in a directory. The lock of a driver that died is free at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oodbench.study.directory import make_folder


class Claims:
    """The studies that this driver has to itself."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / "locks"
        self._held: dict[str, Any] = {}

    def take(self, study_id: str, wait: bool) -> bool:
        """Whether the study is ours now. Waiting drivers must take theirs in the same order, lest they wait in turn."""
        from filelock import FileLock, Timeout

        if study_id in self._held:
            return True
        make_folder(self.folder)
        lock = FileLock(self.folder / f"{study_id}.lock", thread_local=False)  # released by the thread that concludes
        try:
            lock.acquire(timeout=-1 if wait else 0, poll_interval=0.2)
        except Timeout:
            return False
        self._held[study_id] = lock
        return True

    def release(self, study_id: str) -> None:
        lock = self._held.pop(study_id, None)
        if lock is not None:
            lock.release()

    def release_all(self) -> None:
        for study_id in list(self._held):
            self.release(study_id)
