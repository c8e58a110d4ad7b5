"""The working directory of a run: where the unfinished work of a study lies, and files written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from oodbench.plugin.files import replacing

DIRECTORY = Path(".oodbench")


def study_folder(directory: Path, study_id: str) -> Path:
    """Where the unfinished work of a study is; whoever writes there holds the study's lock."""
    return directory / "studies" / study_id


def write_atomically(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_bytes(content)
