"""Handed-in studies in a record: rows of their own, labelled so, that no run takes for its own work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from oodbench.record.delivery import deliver
from oodbench.record.outbox import Outbox
from oodbench.record.tracking import Record
from oodbench.study.claim import Claims
from oodbench.study.outcome import Outcome
from oodbench.study.record import ConcludedStudy

HANDED_IN = "handed in"
BASELINE = "baseline"


def labelled(study: ConcludedStudy, origin: str) -> ConcludedStudy:
    """With a label that says where it comes from, and an identity of its own."""
    record, prefix = study.record, _prefix(origin)
    return ConcludedStudy(
        replace(
            record,
            label=f"{record.label} [{origin}]",
            study_id=f"{prefix}{record.study_id}",
            repeat_of=f"{prefix}{record.repeat_of}" if record.repeat_of else "",
            models="nothing",  # they stayed where they were trained
        ),
        study.results,
    )


def is_from(study: ConcludedStudy, origin: str) -> bool:
    return study.record.study_id.startswith(_prefix(origin))


def _prefix(origin: str) -> str:
    """Of identities, which have no blanks."""
    return f"{origin.replace(' ', '-')}-"


def add_to_record(studies: Sequence[ConcludedStudy], record: Record) -> list[str]:
    """The labels with which the record shows them; what it has already is not added twice."""
    outbox, claims = Outbox(record.directory), Claims(record.directory)
    labels = []
    try:
        for study in studies:
            own = labelled(study, HANDED_IN)
            assert own.results is not None
            claims.take(own.record.study_id, wait=True)
            parcel = outbox.put(Outcome(own.record, own.results), record.destination, fresh=False)
            deliver(record, parcel)
            outbox.remove(parcel)
            labels.append(own.record.title)
    finally:
        claims.release_all()
    return labels
