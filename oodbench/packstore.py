"""Finished packs on disk, each written whole or not at all, until their study is recorded.

A run that was stopped finds them here and continues. The files are for this machine's next run, not for sharing:
models that are kept go to the record, as plain arrays.
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
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
