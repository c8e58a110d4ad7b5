"""Files that a dataset needs and that do not come with it: where they live, and what can be done with them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

VARIABLE = "OODBENCH_DATA"


def data_root() -> Path:
    """The folder of all data files: what OODBENCH_DATA says, or the user's data folder of the platform."""
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("oodbench", appauthor=False)


@dataclass(frozen=True)
class Holding:
    """A file as it is there, or as it should be."""

    name: str
    facts: Mapping[str, str | int] = field(default_factory=dict)
    fault: str = ""  # why it cannot be used
    remedy: str = ""


class Transfer:
    """What a fetch tells about its progress. This one is silent; the command line has one that draws."""

    def begin(self, files: int) -> None:
        """So many files are going to be fetched."""

    def expect(self, name: str, size: int, there: int) -> None:
        """The file has so many bytes, some of them there from an earlier try."""

    def advance(self, name: str, size: int) -> None:
        """So many more bytes of the file have come."""

    def note(self, text: str) -> None:
        """Something the user should know: a retry, another mirror."""

    def finish(self, name: str) -> None:
        """The file is whole and in its place."""

    def end(self) -> None:
        """No more files come, however it ended."""


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
        """Get the files that `which` describes, such as {"year": "2018"}; those that are there and whole stay."""

    @abstractmethod
    def inventory(self) -> list[Holding]:
        """What is there, by the records."""

    @abstractmethod
    def verify(self) -> list[Holding]:
        """What is there, each file read again and compared with what was recorded when it came."""
