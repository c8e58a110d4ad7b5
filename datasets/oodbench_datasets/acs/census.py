"""Census files: which PUMS person files there are, where they are published, and which of them are in the data folder.

A file is used only if it is in the registry, a JSON file beside them that has the SHA-256 and size of each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from oodbench.errors import UnknownName, UnusableData, UserError
from oodbench.plugin.files import VARIABLE, Holding, data_root, replacing
from oodbench.plugin.reading import read_bounded
from oodbench_datasets.acs.states import FIPS

ADDRESS = "https://www2.census.gov/programs-surveys/acs/data/pums"
YEARS = tuple(range(2014, 2025))
HORIZONS = ("1-Year", "5-Year")
STATES = dict(FIPS)
CODES = STATES | {"DC": 11, "PR": 72}
"""FIPS codes of everything that has files; where no states are named, the 50 states are meant."""


@dataclass(frozen=True)
class PersonFile:
    """The person file of one state, year and horizon."""

    year: int
    horizon: str
    state: str

    def __post_init__(self) -> None:
        if self.year not in YEARS:
            raise UserError(f"there are no census files for {self.year}.\nYears: {YEARS[0]} to {YEARS[-1]}.")
        if self.horizon not in HORIZONS:
            raise UnknownName("horizon", self.horizon, HORIZONS)
        if self.state not in CODES:
            raise UnknownName("state", self.state, CODES)
        if (self.year, self.horizon) == (2020, "1-Year"):
            raise UserError("the Census Bureau published no standard 1-year files for 2020.\nUse 2019, 2021 or 5-Year.")

    @property
    def key(self) -> str:
        return f"{self.year}/{self.horizon}/{self.state}"

    @property
    def zip_name(self) -> str:
        return f"csv_p{self.state.lower()}.zip"

    @property
    def csv_name(self) -> str:
        """Inside the zip, and where it was unpacked."""
        if self.year >= 2017:
            return f"psam_p{CODES[self.state]:02}.csv"
        return f"ss{self.year % 100}p{self.state.lower()}.csv"

    def url(self, address: str = ADDRESS) -> str:
        return f"{address.rstrip('/')}/{self.year}/{self.horizon}/{self.zip_name}"

    @property
    def remedy(self) -> str:
        return f"oodbench data fetch acs_travel --year {self.year} --horizon {self.horizon} --states {self.state}"


def remedy_for(files: Iterable[PersonFile]) -> str:
    """The command that gets these files, which have one year and horizon."""
    files = list(files)
    states = [file.state for file in files]
    command = f"oodbench data fetch acs_travel --year {files[0].year} --horizon {files[0].horizon}"
    return command if len(states) >= len(STATES) - 2 else f"{command} --states {','.join(states)}"


@dataclass(frozen=True)
class Entry:
    """What the registry says of a file."""

    path: str  # below the folder
    sha256: str
    size: int
    rows: int
    source: str


class CensusFolder:
    """The person files in the data folder."""

    name = "census"

    @property
    def folder(self) -> Path:
        return data_root() / "census"

    def inventory(self) -> list[Holding]:
        return [_holding(key, entry) for key, entry in sorted(self.entries().items())]

    def verify(self) -> list[Holding]:
        from pooch import file_hash

        holdings = []
        for key, entry in sorted(self.entries().items()):
            path, fault = self.folder / entry.path, ""
            if not path.is_file():
                fault = "the file is missing"
            elif path.stat().st_size != entry.size:
                fault = f"the file has {path.stat().st_size:,} bytes, not {entry.size:,}"
            elif file_hash(str(path)) != entry.sha256:
                fault = "the file has changed since it was fetched (its SHA-256 differs)"
            holdings.append(_holding(key, entry, fault, person_file(key).remedy if fault else ""))
        return holdings

    def entries(self) -> dict[str, Entry]:
        try:
            content = read_bounded(self.folder / "registry.json")
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise UnusableData(f"{self.folder} cannot be read: {error.strerror}.\nCheck {VARIABLE}.") from None
        try:
            return {key: _entry(key, values) for key, values in json.loads(content).items()}
        except (ValueError, TypeError, AttributeError, RecursionError, UserError):
            raise UnusableData(
                f"{self.folder / 'registry.json'} cannot be read.\nDelete it and fetch the files again."
            ) from None

    def record(self, file: PersonFile, entry: Entry) -> None:
        with self._alone():
            self._write({**self.entries(), file.key: entry})

    def forget(self, file: PersonFile) -> None:
        with self._alone():
            self._write({key: entry for key, entry in self.entries().items() if key != file.key})

    def missing(self, files: Iterable[PersonFile]) -> list[PersonFile]:
        entries = self.entries()
        return [
            file for file in files if file.key not in entries or not (self.folder / entries[file.key].path).is_file()
        ]

    def find(self, file: PersonFile) -> tuple[Path, Entry]:
        """The file, if it is present and has its recorded size; `verify` checks the content."""
        entry = self.entries().get(file.key)
        path = self.folder / entry.path if entry else None
        if entry is None or path is None or not path.is_file():
            raise UnusableData(f"there is no census file {file.key} in {self.folder}.\nFetch it: {file.remedy}")
        if path.stat().st_size != entry.size:
            raise UnusableData(f"{path} has changed since it was fetched.\nFetch it again: {file.remedy}")
        return path, entry

    @contextmanager
    def _alone(self) -> Iterator[None]:
        from filelock import FileLock

        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / "registry.lock"):
            yield

    def _write(self, entries: Mapping[str, Entry]) -> None:
        text = json.dumps({key: asdict(entry) for key, entry in sorted(entries.items())}, indent=1)
        with replacing(self.folder / "registry.json") as temporary:
            temporary.write_text(text)


CENSUS = CensusFolder()


def person_file(key: str) -> PersonFile:
    year, horizon, state = key.split("/")
    return PersonFile(int(year), horizon, state)


def _entry(key: str, values: Mapping[str, str | int]) -> Entry:
    """As it was written, or a ValueError or TypeError."""
    entry = Entry(**values)  # type: ignore[arg-type]
    for field, value in asdict(entry).items():
        if type(value) is not (int if field in ("size", "rows") else str):
            raise TypeError(field)
    below, name = Path(entry.path), os.fsencode(entry.path)
    if person_file(key).key != key or below.is_absolute() or ".." in below.parts or b"\0" in name or len(name) > 255:
        raise ValueError(key)
    return entry


def _holding(key: str, entry: Entry, fault: str = "", remedy: str = "") -> Holding:
    file = person_file(key)
    facts: dict[str, str | int] = {"year": file.year, "horizon": file.horizon, "state": file.state}
    return Holding(key, {**facts, "rows": entry.rows, "size": entry.size, "path": entry.path}, fault, remedy)
