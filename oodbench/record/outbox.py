"""Concluded studies on their way to the record: each a folder with all that the record will say, written at once.

A study goes from its packs into the outbox, and from there into the record. Each step is repeated until it is done:
what a killed driver or a server that was away interrupted, the next run or `oodbench sync` completes.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oodbench.record.entries import (
    configuration_metrics,
    search_series,
    study_metrics,
    study_params,
    study_tags,
    write_artifacts,
)
from oodbench.record.inputs import data_inputs
from oodbench.record.notes import NOTE, configuration_name, experiment_tags, study_note
from oodbench.record.parcel import DataInput, Entry, Parcel
from oodbench.study.directory import study_folder
from oodbench.study.outcome import Outcome

CONTENTS = "parcel.json"


class Outbox:
    """Under `directory`. Whoever puts or removes a parcel holds the lock of its study."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.folder = directory / "outbox"

    def put(self, outcome: Outcome, destination: str, fresh: bool) -> Parcel:
        """All of it on disk, or nothing."""
        study = outcome.study
        id = f"{study.study_id}-{uuid.uuid4().hex[:8]}"
        partial = study_folder(self.directory, study.study_id) / "parcel"
        shutil.rmtree(partial, ignore_errors=True)
        parcel = _describe(outcome, id, destination, fresh, self.folder / id)
        try:
            (partial / "artifacts").mkdir(parents=True)
            write_artifacts(outcome, partial / "artifacts")
            contents = {key: value for key, value in asdict(parcel).items() if key != "folder"}
            (partial / CONTENTS).write_text(json.dumps(contents))
            _settle(partial)
            self.folder.mkdir(exist_ok=True)
            partial.rename(parcel.folder)
        except OSError:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return parcel

    def parcels(self) -> list[Parcel]:
        """The oldest first."""
        found = [_read(path.parent) for path in self.folder.glob(f"*/{CONTENTS}")]
        return sorted((parcel for parcel in found if parcel), key=lambda parcel: (parcel.concluded, parcel.id))

    def remove(self, parcel: Parcel) -> None:
        """With what is left of the study's packs."""
        aside = study_folder(self.directory, parcel.study)
        aside.mkdir(parents=True, exist_ok=True)
        parcel.folder.rename(aside / parcel.id)  # from here on it is no parcel, even if we are killed
        shutil.rmtree(aside, ignore_errors=True)


def _describe(outcome: Outcome, id: str, destination: str, fresh: bool, folder: Path) -> Parcel:
    study = outcome.study
    chosen = outcome.selection.configuration if outcome.selection else None
    metrics = study_metrics(outcome)
    tags = {"oodbench.kind": "study", "oodbench.study": study.study_id, "oodbench.parcel": id}
    return Parcel(
        id=id,
        study=study.study_id,
        label=study.label,
        dataset_id=study.dataset_id,
        destination=destination,
        fresh=fresh,
        started=int(outcome.started * 1000),
        concluded=int(time.time() * 1000),
        error=outcome.error or "",
        experiment_tags=experiment_tags(study),
        parent=Entry(
            study.label,
            "FAILED" if outcome.error else "FINISHED",
            metrics,
            _text(study_params(outcome)),
            tags | _text(study_tags(outcome)) | {NOTE: study_note(outcome, metrics)},
        ),
        children=[
            Entry(
                configuration_name(study, index, index == chosen),
                "FAILED" if scores["failed_trainings"] else "FINISHED",
                scores,
                _text(hparams),
            )
            for index, (hparams, scores) in enumerate(
                zip(study.configurations, configuration_metrics(outcome), strict=True)
            )
        ],
        folder=folder,
        series=search_series(outcome),
        inputs=data_inputs(outcome),
    )


def _text(values: dict[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in values.items()}


def _read(folder: Path) -> Parcel | None:
    try:
        contents = json.loads((folder / CONTENTS).read_text())
    except FileNotFoundError:  # delivered by another driver just now
        return None
    parent, children = Entry(**contents.pop("parent")), [Entry(**child) for child in contents.pop("children")]
    inputs = [DataInput(**one) for one in contents.pop("inputs")]
    series = {name: [(step, value) for step, value in points] for name, points in contents.pop("series").items()}
    return Parcel(**contents, parent=parent, children=children, inputs=inputs, series=series, folder=folder)


def _settle(folder: Path) -> None:
    """Wait until the disk has the files: a name must not appear before its contents."""
    for path in _below(folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _below(folder: Path) -> Iterator[Path]:
    yield from folder.rglob("*")
    yield folder
