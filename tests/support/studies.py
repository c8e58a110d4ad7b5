"""Concluded studies with made-up results, for tests of what is made of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from oodbench.engine.data import Task
from oodbench.study.record import (
    SCHEMA,
    Chosen,
    ConcludedStudy,
    DataUsed,
    Granted,
    Ledger,
    Opening,
    Provenance,
    StudyRecord,
)

DAY = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def made_up(
    label: str,
    results: pd.DataFrame | None,
    task: Task = "regression",
    trials: int = 20,
    seeds: int = 10,
    **changes: Any,
) -> ConcludedStudy:
    """A study with these results; `changes` are as for `changed`."""
    record = StudyRecord(
        schema=SCHEMA,
        study_id="id",
        search_id=label,
        repeat_of="",
        label=label,
        method=label.partition(" ")[0],
        ranked=True,
        dataset="data",
        dataset_id="data",
        settings={},
        task=task,
        notice="",
        model="linear",
        model_settings={},
        recipe={},
        fixed={},
        budget=Granted(trials=trials, seeds=seeds),
        selector="worst",
        choose="study",
        choice_told="",
        information=(),
        status="FINISHED",
        reason="",
        ledger=Ledger(trials=trials),
        configurations=tuple({} for _ in range(trials)),
        failures=(),
        choice=Chosen("worst", 0, 1.0, {}),
        data=DataUsed("f" * 16, "v" * 16, 1, None, {}, {}),
        opening=Opening(DAY, (0,), (), False, False, "e" * 16, {}),
        metrics=(),
        missing={},
        stability=None,
        models="nothing",
        provenance=Provenance({}, "3.11.7", "", "", DAY, DAY),
    )
    study = changed(ConcludedStudy(record, results, "run"), **changes)
    return study if results is not None else failed(study, study.record.reason)


def changed(study: ConcludedStudy, **values: Any) -> ConcludedStudy:
    """With other values in its record: `label`, or `ledger__trials` for one inside; also `run_id` and `results`."""
    record = study.record
    for name, value in values.items():
        if name in ("run_id", "results"):
            continue
        part, _, inside = name.partition("__")
        record = replace(record, **{part: replace(getattr(record, part), **{inside: value}) if inside else value})
    return replace(study, record=record, **{name: values[name] for name in ("run_id", "results") if name in values})


def failed(study: ConcludedStudy, reason: str) -> ConcludedStudy:
    return changed(study, results=None, status="FAILED", reason=reason, choice=None, opening=None)
