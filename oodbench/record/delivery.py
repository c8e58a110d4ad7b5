"""From the outbox into the record: every parcel once, however often it is tried and wherever a try broke off.

A parcel's runs carry its id. A later try finds them, completes what is half-written and adds what is missing; the
parent run ends last, so that a study in the record is a whole one.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oodbench.errors import TrackingFailed, Unreachable
from oodbench.record.notes import with_run_id
from oodbench.record.outbox import Outbox
from oodbench.record.parcel import Parcel
from oodbench.record.tracking import Record
from oodbench.study.claim import Claims

WRITERS = 4  # at once, to a server; the embedded database takes one


def deliver(record: Record, parcel: Parcel, go_on: Callable[[], None] = lambda: None) -> None:
    """After this the record has the study. Otherwise TrackingFailed, or what `go_on` raises, between any two writes."""
    record.check_reachable()
    _ = record.client  # opening the embedded database takes the lock, too
    with record.alone():
        experiment = record.ensure_experiment(parcel.dataset_id, parcel.experiment_tags)
        parent = _open_parent(record, parcel, experiment)
        if parent is None:
            return
        entry = replace(parcel.parent, tags=with_run_id(parcel.parent.tags, parent))
        record.fill_run(parent, entry, parcel.concluded)
        record.add_series(parent, parcel.series, parcel.concluded)
        record.add_inputs(parent, parcel.inputs)
        _write_children(record, parcel, experiment, parent, go_on)
        go_on()
        record.add_artifacts(parent, parcel.artifacts)
        record.end_run(parent, parcel.parent.status, parcel.concluded)


def _open_parent(record: Record, parcel: Parcel, experiment: str) -> str | None:
    """The run to write into: what an earlier try left or a new one; None where the record has the study already."""
    runs = record.search([experiment], f"tags.`oodbench.study` = '{parcel.study}'")
    ours = [run for run in runs if run.data.tags.get("oodbench.parcel") == parcel.id]
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
    tags = {key: parcel.parent.tags[key] for key in ("oodbench.kind", "oodbench.study", "oodbench.parcel")}
    return record.create_run(experiment, parcel.parent.name, tags, parcel.started)


def _write_children(record: Record, parcel: Parcel, experiment: str, parent: str, go_on: Callable[[], None]) -> None:
    there = _children(record, parcel, experiment, parent)

    def write(index: int) -> None:
        go_on()
        found, entry = there.get(index), parcel.children[index]
        if found is not None and found.info.status != "RUNNING":
            return
        tags = {
            "mlflow.parentRunId": parent,
            "oodbench.kind": "configuration",
            "oodbench.configuration": str(index),
        }
        started = parcel.started + len(parcel.children) - index  # MLflow lists the newest first: so in their order
        run_id = found.info.run_id if found else record.create_run(experiment, entry.name, tags, started)
        record.fill_run(run_id, entry, parcel.concluded)
        record.end_run(run_id, entry.status, parcel.concluded)

    with ThreadPoolExecutor(1 if record.embedded else WRITERS, "record") as writers:
        done = [writers.submit(write, index) for index in range(len(parcel.children))]
        try:
            for future in done:
                future.result()
        except BaseException:
            writers.shutdown(cancel_futures=True)
            raise
    if record.is_server:  # a request that seemed lost and was sent again may have arrived twice
        _children(record, parcel, experiment, parent)


def _children(record: Record, parcel: Parcel, experiment: str, parent: str) -> dict[int, Any]:
    """The child runs that are there, by configuration; of several for one, the others are removed."""
    found: dict[int, Any] = {}
    runs = record.search([experiment], f"tags.`mlflow.parentRunId` = '{parent}'")
    for run in sorted(runs, key=lambda run: (run.info.status == "RUNNING", str(run.info.run_id))):
        if found.setdefault(int(run.data.tags["oodbench.configuration"]), run) is not run:
            record.delete_run(run.info.run_id, parcel.concluded)
    return found


def _remove(record: Record, parcel: Parcel, experiment: str, parent: Any) -> None:
    for run in [*record.search([experiment], f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'"), parent]:
        record.delete_run(run.info.run_id, parcel.concluded)


@dataclass(frozen=True)
class Delivery:
    """What became of a parcel."""

    parcel: Parcel
    record: str  # its address
    reason: str = ""  # why it is still here

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        parcel = self.parcel
        named = {"method": parcel.label, "dataset_id": parcel.dataset_id, "study": parcel.study}
        return named | {"record": self.record, "delivered": not self.reason, "reason": self.reason}


def deliver_all(directory: Path, tracking_uri: str | None) -> list[Delivery]:
    """Everything in the outbox, each to the record it was for, or all of it to `tracking_uri`."""
    outbox, claims = Outbox(directory), Claims(directory)
    outcomes: list[Delivery] = []
    records: dict[str | None, Record] = {}
    try:
        for parcel in outbox.parcels():
            uri = tracking_uri or parcel.destination or None
            try:
                if not claims.take(parcel.study, wait=False):
                    raise TrackingFailed("another run is at it")
                record = records.get(uri) or Record(uri, directory)
                records[uri] = record
                deliver(record, parcel)
                outbox.remove(parcel)
                outcomes.append(Delivery(parcel, record.address))
            except (TrackingFailed, Unreachable) as error:
                outcomes.append(Delivery(parcel, parcel.destination or str(directory), str(error).partition("\n")[0]))
    finally:
        claims.release_all()
    return outcomes
