"""Recorded studies, planned again with what is installed here. What cannot be planned is said, study by study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from oodbench.errors import OodbenchError
from oodbench.plugin.registry import Kind, names
from oodbench.study.again import spec_of
from oodbench.study.plan import StudySpec, plan
from oodbench.study.record import StudyRecord
from oodbench.study.study import Study

MOST_UNUSED = 10_000  # trials


@dataclass(frozen=True)
class Planned:
    """By the recorded identity, which may not be that of the study."""

    studies: dict[str, Study] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)  # why there is no study


def plan_records(records: Sequence[StudyRecord]) -> Planned:
    """Those on the same data share it."""
    planned = Planned()
    by_id = {record.study_id: record for record in records}
    groups: dict[tuple[str, int, int, str], list[tuple[str, StudySpec]]] = {}
    for record in records:
        fault = missing_plugin(record) or _endless_search(record)
        try:
            if fault:
                raise OodbenchError(fault)
            key = (record.dataset_id, record.budget.seed, record.budget.seeds, record.ledger.device)
            groups.setdefault(key, []).append((record.study_id, spec_of(record, record.dataset)))
        except OodbenchError as error:
            planned.faults[record.study_id] = _one_line(error)
    for (_, _, _, device), group in groups.items():
        try:
            studies = plan([spec for _, spec in group], device or "cpu")
        except OodbenchError as error:
            planned.faults.update(dict.fromkeys((study_id for study_id, _ in group), _one_line(error)))
        else:
            for (study_id, _), study in zip(group, studies, strict=True):
                planned.studies[study_id] = _as_decided(study, by_id[study_id])
    return planned


def _as_decided(study: Study, record: StudyRecord) -> Study:
    """With what a search decided on the way."""
    if study.budget.halves:
        return replace(study, climbed=tuple(rung.configurations for rung in record.ledger.rungs[1:]))
    return study if study.budget.drawn_up_front else replace(study, tried=record.configurations)


def missing_plugin(record: StudyRecord) -> str:
    """Only installed plug-ins are named by a name: nothing else that a record says is imported or opened."""
    asked: list[tuple[Kind, str]] = [
        ("method", record.method),
        ("dataset", record.dataset),
        ("model", record.model),
        ("selector", record.selector.partition(":")[0]),
    ]
    for kind, name in asked:
        if name not in names(kind):
            return f"{kind} {name!r} is not an installed plug-in"
    return ""


def _endless_search(record: StudyRecord) -> str:
    """A space of few points is searched whole, whatever the budget; but a budget must be one that can be planned."""
    tried, granted = len(record.configurations), record.budget.trials
    return f"it tried {tried} of {granted:,} trials" if granted > max(tried, MOST_UNUSED) else ""


def _one_line(error: OodbenchError) -> str:
    return " ".join(str(error).split()).rstrip(".")
