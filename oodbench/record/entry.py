"""What MLflow says of a study: its run, a run per configuration, a curve, and the data as MLflow's datasets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from oodbench.study.record import Status


@dataclass(frozen=True)
class Entry:
    """What a run says."""

    name: str
    status: Status
    metrics: Mapping[str, float]
    params: Mapping[str, str]
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DataInput:
    """Data that a study used, as MLflow describes a dataset."""

    name: str
    digest: str
    context: str  # training, validation or test
    schema: str  # JSON; empty where columns have no names
    profile: str  # JSON


@dataclass(frozen=True)
class Entries:
    """All that MLflow says of a study besides its artifacts."""

    experiment_tags: Mapping[str, str]
    parent: Entry
    children: list[Entry]  # one per configuration
    series: Mapping[str, list[tuple[int, float]]]  # of the parent: metrics by step
    inputs: list[DataInput]
