"""From the outbox into the record: every parcel once, however often it is tried and wherever a try broke off.

A parcel's runs carry its id. A later try finds them, completes what is half-written and adds what is missing; the
parent run ends last, so that a study in the record is a whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodbench.errors import TrackingFailed, Unreachable
from oodbench.record.entries import entries_of
from oodbench.record.entry import Entry
from oodbench.record.notes import with_run_id
from oodbench.record.outbox import Outbox
from oodbench.record.parcel import Parcel
from oodbench.record.schema import CONFIGURATION, KIND, NUMBER, PARCEL_ID, PARENT, STUDY_ID
from oodbench.record.tracking import Record
from oodbench.study.claim import Claims

if TYPE_CHECKING:
    from mlflow.entities import Run

WRITERS = 4  # at once, to a server; the embedded database takes one


def deliver(record: Record, parcel: Parcel, go_on: Callable[[], None] = lambda: None) -> None:
    """After this the record has the study. Otherwise TrackingFailed, or what `go_on` raises, between any two writes."""
    record.check_reachable()
    _ = record.client  # opening the embedded database takes the lock, too
    entries = entries_of(parcel.record, parcel.results, parcel.id)
    with record.alone():
        experiment = record.ensure_experiment(parcel.record.dataset_id, entries.experiment_tags)
        parent = _open_parent(record, parcel, experiment, entries.parent)
        if parent is None:
            record.forget(parcel.study_id)  # what the record has counts
            return
        entry = replace(entries.parent, tags=with_run_id(entries.parent.tags, parent))
        record.fill_run(parent, entry, parcel.concluded)
        record.add_series(parent, entries.series, parcel.concluded)
        record.add_inputs(parent, entries.inputs)
        with record.many_writes():
            _write_children(record, parcel, experiment, parent, entries.children, go_on)
        go_on()
        record.add_artifacts(parent, parcel.artifacts)
        record.end_run(parent, entries.parent.status, parcel.concluded)
    record.keep(parcel, parent)


def _open_parent(record: Record, parcel: Parcel, experiment: str, entry: Entry) -> str | None:
    """The run to write into: what an earlier try left or a new one; None where the record has the study already."""
    runs = record.search([experiment], f"tags.`{STUDY_ID}` = '{parcel.study_id}'")
    ours = [run for run in runs if run.data.tags.get(PARCEL_ID) == parcel.id]
    whole = [run for run in ours if run.info.status != "RUNNING"]
    if not parcel.fresh:
        whole += [run for run in runs if run.info.status == "FINISHED"]
    begun = sorted((run for run in ours if run.info.status == "RUNNING"), key=lambda run: str(run.info.run_id))
    strays = [run for run in runs if run.info.status == "RUNNING" and run not in begun]
    for run in [*strays, *(begun if whole else begun[1:])]:  # also of a driver that lost its directory
        _remove(record, parcel, experiment, run)
    if whole:
        return None
    if begun:
        return str(begun[0].info.run_id)
    tags = {name: entry.tags[name] for name in (KIND, STUDY_ID, PARCEL_ID)}
    return record.create_run(experiment, entry.name, tags, parcel.started)


def _write_children(
    record: Record, parcel: Parcel, experiment: str, parent: str, entries: Sequence[Entry], go_on: Callable[[], None]
) -> None:
    there = _children(record, parcel, experiment, parent)

    def write(index: int) -> None:
        go_on()
        run, entry = there.get(str(index)), entries[index]
        if run is not None and run.info.status != "RUNNING":
            return
        tags = {PARENT: parent, KIND: CONFIGURATION, NUMBER: str(index)}
        started = parcel.started + len(entries) - index  # MLflow lists the newest first: so in their order
        run_id = run.info.run_id if run else record.create_run(experiment, entry.name, tags, started)
        record.fill_run(run_id, entry, parcel.concluded)
        record.end_run(run_id, entry.status, parcel.concluded)

    with ThreadPoolExecutor(1 if record.embedded else WRITERS, "record") as writers:
        written = [writers.submit(write, index) for index in range(len(entries))]
        try:
            for future in written:
                future.result()
        except BaseException:
            writers.shutdown(cancel_futures=True)
            raise
    if record.is_server:  # a request that seemed lost and was sent again may have arrived twice
        _children(record, parcel, experiment, parent)


def _children(record: Record, parcel: Parcel, experiment: str, parent: str) -> dict[str, Run]:
    """The child runs that are there, by configuration; of several for one, the others are removed."""
    children: dict[str, Run] = {}
    runs = record.search([experiment], f"tags.`{PARENT}` = '{parent}'")
    for run in sorted(runs, key=lambda run: (run.info.status == "RUNNING", str(run.info.run_id))):
        number = run.data.tags.get(NUMBER)
        if number is None or children.setdefault(number, run) is not run:
            record.delete_run(run.info.run_id, parcel.concluded)
    return children


def _remove(record: Record, parcel: Parcel, experiment: str, parent: Run) -> None:
    for run in [*record.search([experiment], f"tags.`{PARENT}` = '{parent.info.run_id}'"), parent]:
        record.delete_run(run.info.run_id, parcel.concluded)


@dataclass(frozen=True)
class Delivery:
    """What became of a parcel."""

    method: str  # its label; of a parcel that cannot be read, the parcel's name
    dataset_id: str
    study_id: str
    record: str  # its address
    reason: str = ""  # why it is still here

    @property
    def title(self) -> str:
        return f"{self.method} on {self.dataset_id}" if self.dataset_id else f"parcel {self.method}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"delivered": not self.reason}


def deliver_all(directory: Path, tracking_uri: str | None) -> list[Delivery]:
    """Everything in the outbox, each to the record it was for, or all of it to `tracking_uri`."""
    outbox, claims = Outbox(directory), Claims(directory)
    deliveries: list[Delivery] = []
    records: dict[str | None, Record] = {}
    parcels = outbox.parcels(lambda id, reason: deliveries.append(Delivery(id, "", "", str(directory), reason)))
    try:
        for parcel in parcels:
            study = parcel.record
            uri = tracking_uri or parcel.destination or None
            address, reason = parcel.destination or str(directory), ""
            try:
                if not claims.take(parcel.study_id, wait=False):
                    raise TrackingFailed("another run is at work on it")
                if not parcel.is_there:  # another run delivered it after we had read it
                    continue
                record = records.get(uri) or Record(uri, directory)
                records[uri] = record
                deliver(record, parcel)
                outbox.remove(parcel)
                address = record.address
            except (TrackingFailed, Unreachable) as error:
                reason = str(error).partition("\n")[0]
            deliveries.append(Delivery(study.label, study.dataset_id, study.study_id, address, reason))
    finally:
        claims.release_all()
    return deliveries
