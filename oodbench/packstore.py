"""Finished packs on disk, each written whole or not at all, until their study is recorded.

A run that was stopped finds them here and continues. The files are for this machine's next run, not for sharing:
models that are kept go to the record, as plain arrays. To load a pickle is to run what is in it, so the files are
written for their owner alone, and one that somebody else could have written is not loaded.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

from oodbench.study import Study
from oodbench.trial import Pack, PackResult


class PackStore:
    def __init__(self, directory: Path, study: Study) -> None:
        self.folder = directory / "studies" / study.identity
        self.study = study

    def save(self, pack: Pack, result: PackResult) -> None:
        import cloudpickle

        write_atomically(self.folder / f"pack-{pack.index:05d}.pickle", cloudpickle.dumps(result))

    def load(self) -> dict[int, PackResult]:
        """Results by pack number. A file that cannot be read is as good as none: its pack runs again."""
        results = {}
        for path in sorted(self.folder.glob("pack-*.pickle")):
            if not (_only_ours(path) and _only_ours(self.folder)):
                continue
            try:
                results[int(path.stem.removeprefix("pack-"))] = pickle.loads(path.read_bytes())
            except (pickle.UnpicklingError, EOFError, ImportError, AttributeError):
                path.unlink()
        return results

    def write_json(self, name: str, content: Any) -> Path:
        path = self.folder / name
        write_atomically(path, json.dumps(content, indent=2, default=str).encode())
        return path

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def write_atomically(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with open(partial, "wb", opener=_for_the_owner) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)


def _only_ours(path: Path) -> bool:
    found = path.stat()
    return found.st_uid == os.getuid() and not found.st_mode & 0o022
