"""The working directory of a run: where the unfinished work of a study lies, and files written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from oodbench.plugin.files import replacing

DIRECTORY = Path(".oodbench")


def study_folder(directory: Path, study_id: str) -> Path:
    """Where the unfinished work of a study is; whoever writes there holds the study's lock."""
    return directory / "studies" / study_id


def make_folder(folder: Path, mode: int = 0o755) -> None:
    """With those above it. Nobody else can write into what is made here, however generous the umask: what lies in
    folders of others is not trusted later."""
    for place in reversed((folder, *folder.parents)):
        if not place.is_dir():
            place.mkdir(mode=mode, exist_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    make_folder(path.parent, 0o700)
    with replacing(path) as temporary:
        temporary.write_bytes(content)
