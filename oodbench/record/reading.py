"""A study as the record has it, read from the entry that was made of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from oodbench.record.parcel import Entry
from oodbench.study.ledger import Ledger
from oodbench.study.record import StudyRecord

if TYPE_CHECKING:
    import pandas as pd

VERSION = "oodbench.version."


REPEAT_OF = "oodbench.repeat_of"


CHOSEN = "chosen."


USED = "used/"


T = TypeVar("T")


def read_study(run_id: str, entry: Entry, concluded: int, results: pd.DataFrame | None) -> StudyRecord:
    tags = entry.tags
    return StudyRecord(
        run_id=run_id,
        study=tags["oodbench.study"],
        label=tags["oodbench.label"],
        task="classification" if tags["oodbench.task"] == "classification" else "regression",
        status=entry.status,
        reason=tags.get("oodbench.error", ""),
        trials=int(entry.params["trials"]),
        seeds=int(entry.params["seeds"]),
        failed_trainings=int(entry.metrics["failed_trainings"]),
        fingerprint=tags["oodbench.fingerprint"],
        information=tags["oodbench.information"],
        notice=tags.get("oodbench.notice", ""),
        test_fingerprint=tags.get("oodbench.test_fingerprint", ""),
        ledger=_ledger(entry),
        results=results,
        selector=entry.params["selector"],
        search=tags.get("oodbench.search", ""),
        repeat_of=tags.get(REPEAT_OF, ""),
        concluded=datetime.fromtimestamp(concluded / 1000, UTC).date().isoformat(),
        versions=_named(VERSION, tags),
        chosen=_named(CHOSEN, entry.params),
        command=tags.get("oodbench.command", ""),
        git_commit=tags.get("oodbench.git_commit", ""),
        python=tags.get("oodbench.python", ""),
    )


def _ledger(entry: Entry) -> Ledger:
    params, used = entry.params, _named(USED, entry.metrics)
    seconds = params["budget_seconds"]
    return Ledger(
        trials_granted=int(params["trials_granted"]),
        search=params["search"],
        scheduler=params["scheduler"],
        budget_seconds=None if seconds == "None" else float(seconds),
        trainings=int(used["trainings"]),
        gradient_steps=int(used["gradient_steps"]),
        row_visits=int(used["row_visits"]),
        seconds=used["seconds"],
        device=params["device"],
    )


def _named(prefix: str, values: Mapping[str, T]) -> dict[str, T]:
    return {key.removeprefix(prefix): values[key] for key in sorted(values) if key.startswith(prefix)}
