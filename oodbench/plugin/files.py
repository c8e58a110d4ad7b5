"""Files that a dataset needs and that are not installed with it: where they are, and how they are fetched."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from oodbench.errors import UserError

VARIABLE = "OODBENCH_DATA"


def data_root() -> Path:
    """The folder of all data files: OODBENCH_DATA, or the platform's data folder of the user."""
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("oodbench", appauthor=False)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file, for its owner alone, that takes the place of `path` when it is whole; otherwise it is deleted.

    Examples:
        >>> with replacing(folder / "registry.json") as temporary:
        ...     temporary.write_text("{}")
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())  # a name must not appear before its contents
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)  # of a full disk, give back what was taken


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes the new `folder` when it is whole; otherwise it is deleted."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already.\nName a new folder, or remove it first.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        yield temporary
        temporary.chmod(0o755)
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@dataclass(frozen=True)
class Holding:
    """A data file: present and whole, or with a fault."""

    name: str
    facts: Mapping[str, str | int] = field(default_factory=dict)
    fault: str = ""  # why it cannot be used
    remedy: str = ""


class Transfer:
    """How a fetch reports its progress. This class is silent; the command line draws a bar."""

    def begin(self, files: int) -> None:
        """This many files will be fetched."""

    def expect(self, name: str, size: int, there: int) -> None:
        """The file has `size` bytes, of which `there` are left from an earlier try."""

    def advance(self, name: str, size: int) -> None:
        """This many more bytes of the file have arrived."""

    def note(self, text: str) -> None:
        """Something the user should know: a retry, another mirror."""

    def finish(self, name: str) -> None:
        """The file is whole and in its place."""

    def end(self) -> None:
        """The fetch has ended, successfully or not."""


@dataclass(frozen=True)
class Sources:
    """Where files come from, if not from where they are published."""

    mirrors: Sequence[str] = ()
    folder: Path | None = None
    renew: bool = False  # take files that differ from what was first fetched


class DataFiles(ABC):
    """The files of one or several datasets."""

    name: str

    @abstractmethod
    def fetch(self, which: Mapping[str, str], sources: Sources, transfer: Transfer) -> list[Holding]:
        """Get the files that `which` describes, such as {"year": "2018"}; files that are present and whole are kept."""

    @abstractmethod
    def inventory(self) -> list[Holding]:
        """The files that are present, according to the registry."""

    @abstractmethod
    def verify(self) -> list[Holding]:
        """The files that are present, each read again and compared with what was recorded when it was fetched."""
