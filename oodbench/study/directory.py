"""The working directory of a run: where the unfinished work of a study lies, and files written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

DIRECTORY = Path(".oodbench")


def study_folder(directory: Path, study_id: str) -> Path:
    """Where the unfinished work of a study is; whoever writes there holds the study's lock."""
    return directory / "studies" / study_id


def write_atomically(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(partial, "wb", opener=_for_the_owner) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)  # of a full disk, give back what was taken
        raise


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)
