"""A concluded study as the record will say it: runs, their metrics, parameters and tags, and where the files are."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """What a run of the record says."""

    name: str
    status: str  # FINISHED or FAILED
    metrics: dict[str, float]
    params: dict[str, str]
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DataInput:
    """Data that a study used, as MLflow describes a dataset."""

    name: str
    digest: str
    context: str  # training, validation or test
    schema: str  # JSON; empty where columns have no names
    profile: str  # JSON


@dataclass(frozen=True)
class Parcel:
    """A concluded study, ready to be recorded."""

    id: str  # tells this conclusion from every other, also from another of the same study
    study: str  # its identity
    label: str
    dataset_id: str
    destination: str  # the record it is for, without credentials; empty for the embedded one
    fresh: bool  # whether it is wanted beside an equal study in the record
    started: int  # milliseconds since the epoch
    concluded: int
    error: str
    experiment_tags: dict[str, str]
    parent: Entry
    children: list[Entry]  # one per configuration
    folder: Path
    series: dict[str, list[tuple[int, float]]] = field(default_factory=dict)  # of the parent: metrics by step
    inputs: list[DataInput] = field(default_factory=list)

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    @property
    def title(self) -> str:
        return f"{self.label} on {self.dataset_id}"
