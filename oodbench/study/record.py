"""A study as the record has it, read from the entry that was made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from oodbench.engine.data import Task
from oodbench.study.ledger import Ledger

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class StudyRecord:
    run_id: str
    study: str  # its identity
    label: str
    task: Task
    status: str  # FINISHED or FAILED
    reason: str
    trials: int
    seeds: int
    failed_trainings: int
    fingerprint: str
    information: str
    results: pd.DataFrame | None
    concluded: str = ""  # the day, in UTC
    versions: Mapping[str, str] = field(default_factory=dict)
    notice: str = ""  # what a reader must know of the data
    test_fingerprint: str = ""
    ledger: Ledger = field(default_factory=Ledger)
    selector: str = ""
    search: str = ""  # the identity of its trainings; studies that choose otherwise among the same have it, too
    repeat_of: str = ""  # the study whose search this one repeats
    chosen: Mapping[str, str] = field(default_factory=dict)  # hyper-parameters
    command: str = ""  # that does it again
    git_commit: str = ""
    python: str = ""
