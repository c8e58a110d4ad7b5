"""A concluded study on its way to the record: a folder with its files, and a slip that says where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.study.document import Damaged, read_document
from oodbench.study.record import RESULTS_FILE, STUDY_FILE, StudyRecord, check_results, parse_record, read_results

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
SLIP_FILE = "parcel.json"


@dataclass(frozen=True)
class Slip:
    """What parcel.json says."""

    schema: int
    id: str  # tells this conclusion from every other, also from another of the same study
    destination: str  # the record it is for, without credentials; empty for the embedded one
    fresh: bool  # whether it is wanted beside an equal study in the record


@dataclass(frozen=True, eq=False)
class Parcel:
    """A concluded study, ready to be recorded."""

    id: str
    destination: str
    fresh: bool
    record: StudyRecord
    results: pd.DataFrame
    folder: Path

    @property
    def slip(self) -> Slip:
        return Slip(SCHEMA, self.id, self.destination, self.fresh)

    @property
    def study_id(self) -> str:
        return self.record.study_id

    @property
    def title(self) -> str:
        return self.record.title

    @property
    def is_there(self) -> bool:
        """Whether it is still in the outbox. Whoever holds the study's lock can rely on it."""
        return self.folder.is_dir()

    @property
    def artifacts(self) -> Path:
        return artifacts_in(self.folder)

    @property
    def started(self) -> int:
        """In milliseconds since the epoch, as MLflow counts."""
        return int(self.record.provenance.started.timestamp() * 1000)

    @property
    def concluded(self) -> int:
        return int(self.record.provenance.concluded.timestamp() * 1000)


def artifacts_in(folder: Path) -> Path:
    return folder / "artifacts"


def read_parcel(folder: Path) -> Parcel:
    """The parcel as it was put there. Raises `OtherSchema`, or `Damaged` with what is wrong."""
    files = {
        SLIP_FILE: folder / SLIP_FILE,
        STUDY_FILE: artifacts_in(folder) / STUDY_FILE,
        RESULTS_FILE: artifacts_in(folder) / RESULTS_FILE,
    }
    for name, path in files.items():
        if not path.is_file():
            raise Damaged(f"it has no {name}")
    try:
        name = SLIP_FILE
        slip = read_document(Slip, files[SLIP_FILE].read_bytes(), SCHEMA)
        name = STUDY_FILE
        record = parse_record(files[STUDY_FILE].read_bytes())
        name = RESULTS_FILE
        results = read_results(files[RESULTS_FILE])
        check_results(results, record)
    except Damaged as error:
        raise Damaged(f"{name}: {error}") from None
    return Parcel(slip.id, slip.destination, slip.fresh, record, results, folder)
