"""The record: which studies it has, and what they came to. A study is read from its files, once."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.errors import Notice, TrackingFailed, UnreadableRecord, UserError
from oodbench.record.notes import METHODS_VIEW
from oodbench.record.parcel import Parcel
from oodbench.record.schema import (
    DATASET,
    KIND,
    LABEL,
    REPEAT_OF,
    SEEDS,
    SELECTOR,
    STUDY,
    STUDY_ID,
    TRIALS_GRANTED,
    VIEW,
)
from oodbench.record.store import Store
from oodbench.study.document import Damaged, OtherSchema
from oodbench.study.reading import parse_record, read_results
from oodbench.study.record import RESULTS_FILE, STUDY_FILE, ConcludedStudy
from oodbench.study.study import Study

if TYPE_CHECKING:
    from mlflow.entities import Run

STUDIES = f"tags.`{KIND}` = '{STUDY}'"
REMEDY = "Run the study again with --fresh, or delete the run in `oodbench ui`."


@dataclass(frozen=True)
class Reading:
    """What the record has of the studies of a board."""

    studies: list[ConcludedStudy]
    unreadable: Mapping[str, str]  # label -> what is wrong


class Record(Store):
    """A tracking server, or the embedded database under `directory` where no server is named."""

    def __init__(self, tracking_uri: str | None, directory: Path) -> None:
        self._kept: dict[str, ConcludedStudy] = {}  # what this run concluded, by study
        self._read: dict[str, ConcludedStudy | _Unreadable] = {}  # by run
        super().__init__(tracking_uri, directory)

    def keep(self, parcel: Parcel, run_id: str = "") -> None:
        """Remember a study that this run concluded: it is not read back, and is shown while the server is away."""
        results = parcel.results if parcel.record.choice else None
        self._kept[parcel.study_id] = ConcludedStudy(parcel.record, results, run_id)

    def forget(self, study_id: str) -> None:
        self._kept.pop(study_id, None)

    def finished(self, studies: Sequence[Study]) -> set[str]:
        """Those of the studies that are in the record, whole, by identity."""
        wanted = {study.study_id for study in studies}
        experiments = {self.experiment_id(dataset_id) for dataset_id in {study.dataset_id for study in studies}}
        runs = self.search([id for id in experiments if id], f"{STUDIES} AND attributes.status = 'FINISHED'")
        return wanted & {run.data.tags.get(STUDY_ID, "") for run in runs}

    def studies(
        self, dataset_id: str, trials: int | None = None, seeds: int | None = None, selector: str | None = None
    ) -> list[ConcludedStudy]:
        """The concluded studies on a dataset setting, with this budget and selector if they are named, of each label
        the newest, and then the repeats of these."""
        asked = {TRIALS_GRANTED: trials, SEEDS: seeds, SELECTOR: selector}
        wanted = {name: str(value) for name, value in asked.items() if value is not None}
        runs = [run for run in self._concluded(dataset_id, [*wanted]) if wanted.items() <= run.data.params.items()]
        newest = {run.data.tags[LABEL]: run for run in runs if REPEAT_OF not in run.data.tags}
        shown = {run.data.tags[STUDY_ID] for run in newest.values()}
        repeats = {run.data.tags[STUDY_ID]: run for run in runs if run.data.tags.get(REPEAT_OF) in shown}
        return self._read_all([*newest.values(), *repeats.values()])

    def records_of(self, studies: Sequence[Study]) -> list[ConcludedStudy]:
        """These studies as far as they are concluded, labelled as they are here, in whatever run they were recorded.

        What this run concluded is at hand; the others are read.
        """
        studies_read, unreadable = self._records_of(studies)
        return _at_least_one(studies_read, unreadable)

    def read_boards(self, boards: Sequence[Sequence[Study]]) -> list[Reading]:
        """Of the studies of each board, what `records_of` would say; it is an error if no board has any to show."""
        readings, errors = [], []
        for studies in boards:
            concluded, unreadable = ([], []) if self.is_empty else self._records_of(studies)
            reasons = {error.study_id: error.what for error in unreadable}
            labels = {study.label: reasons[study.study_id] for study in studies if study.study_id in reasons}
            readings.append(Reading(concluded, labels))
            errors += unreadable
        _at_least_one([study for reading in readings for study in reading.studies], errors)
        return readings

    def _records_of(self, studies: Sequence[Study]) -> tuple[list[ConcludedStudy], list[_Unreadable]]:
        unreadable: list[_Unreadable] = []
        concluded = {study.study_id: self._kept[study.study_id] for study in studies if study.study_id in self._kept}
        missing = {study.study_id: study.dataset_id for study in studies if study.study_id not in concluded}
        try:
            newest = {
                run.data.tags[STUDY_ID]: run
                for dataset_id in dict.fromkeys(missing.values())
                for run in self._concluded(dataset_id)
            }
            runs = [newest[study_id] for study_id in missing if study_id in newest]
            read, unreadable = self._read_each(runs)
            concluded |= {study.record.study_id: study for study in read}
        except TrackingFailed:
            if not concluded:
                raise
        labelled = [
            replace(ours, record=replace(ours.record, label=study.label))
            for study in studies
            if (ours := concluded.get(study.study_id))
        ]
        return labelled, unreadable

    def find_study(self, prefix: str) -> str:
        """The run id of the one study whose run id begins so."""
        runs = [] if self.is_empty else self.search(self._experiments(), STUDIES)
        run_ids = [run.info.run_id for run in runs if prefix and run.info.run_id.startswith(prefix)]
        if len(run_ids) != 1:
            raise UserError(
                f"{len(run_ids) or 'no'} studies in {self.address} have a run id that begins with {prefix!r}.\n"
                "`oodbench leaderboard DATASET --json` names the runs."
            )
        return str(run_ids[0])

    def study(self, prefix: str) -> ConcludedStudy:
        """The one study whose run id begins so."""
        run_id = self.find_study(prefix)  # before there is a client, which would create a database
        (study,) = self._read_all([self.ask(self.client.get_run, run_id)])
        return study

    def labelled(self, label: str) -> list[ConcludedStudy]:
        """The newest study with that label on every dataset setting that has one."""
        newest = {
            dataset_id: run
            for dataset_id in self.dataset_ids()
            for run in self._concluded(dataset_id)
            if run.data.tags[LABEL] == label and REPEAT_OF not in run.data.tags
        }
        return self._read_all(newest.values())

    def dataset_ids(self) -> list[str]:
        """The dataset settings that have studies."""
        experiments = self.ask(self.client.search_experiments, filter_string=f"tags.`{DATASET}` != ''")
        return [experiment.name for experiment in experiments]

    def page_of(self, experiment: str) -> str:
        """The part of an address that shows its studies in MLflow's page, in our view if the experiment has it."""
        has_view = VIEW + METHODS_VIEW in self.ask(self.client.get_experiment, experiment).tags
        view = f"&viewStateShareKey={METHODS_VIEW}" if has_view else ""
        return f"#/experiments/{experiment}/runs?workflowType=machine_learning{view}"

    def _experiments(self) -> list[str]:
        return [experiment.experiment_id for experiment in self.ask(self.client.search_experiments)]

    def _concluded(self, dataset_id: str, params: Sequence[str] = ()) -> list[Run]:
        """Parent runs, the newest last. One without the tags and parameters that it is found by is left out."""
        experiment = self.experiment_id(dataset_id)
        if experiment is None:
            return []
        whole = []
        for run in self.search([experiment], f"{STUDIES} AND attributes.status != 'RUNNING'"):
            lacking = [f"tag {tag}" for tag in (STUDY_ID, LABEL) if tag not in run.data.tags]
            lacking += [f"parameter {name}" for name in params if name not in run.data.params]
            if lacking:
                _leave_out(_Unreadable(run, f"is damaged: it has no {lacking[0]}"))
            else:
                whole.append(run)
        return sorted(whole, key=lambda run: run.info.end_time or 0)

    def _read_all(self, runs: Iterable[Run]) -> list[ConcludedStudy]:
        return _at_least_one(*self._read_each(runs))

    def _read_each(self, runs: Iterable[Run]) -> tuple[list[ConcludedStudy], list[_Unreadable]]:
        """Those that can be read, and the others."""
        read = [self._read_once(run) for run in runs]
        studies = [study for study in read if isinstance(study, ConcludedStudy)]
        return studies, [error for error in read if isinstance(error, _Unreadable)]

    def _read_once(self, run: Run) -> ConcludedStudy | _Unreadable:
        run_id = run.info.run_id
        if run_id not in self._read:
            try:
                self._read[run_id] = self._download(run)
            except _Unreadable as error:
                self._read[run_id] = error
        return self._read[run_id]

    def _download(self, run: Run) -> ConcludedStudy:
        run_id = run.info.run_id
        with tempfile.TemporaryDirectory() as folder:
            try:
                name = STUDY_FILE
                record = parse_record(self._fetch(run, STUDY_FILE, folder).read_bytes())
                name = RESULTS_FILE
                results = read_results(self._fetch(run, RESULTS_FILE, folder), record) if record.choice else None
            except OtherSchema as error:
                raise _Unreadable(run, f"was recorded by another version of oodbench: {error}") from None
            except Damaged as error:
                raise _Unreadable(run, f"is damaged: {name}: {error}") from None
        return ConcludedStudy(record, results, run_id)

    def _fetch(self, run: Run, name: str, folder: str) -> Path:
        run_id = run.info.run_id
        try:
            return Path(self.ask(self.client.download_artifacts, run_id, name, folder))
        except TrackingFailed:
            if name in {artifact.path for artifact in self.ask(self.client.list_artifacts, run_id)}:
                raise
        if name == STUDY_FILE:
            raise _Unreadable(run, f"was recorded by another version of oodbench: it has no {name}")
        raise _Unreadable(run, f"is damaged: it has no {name}")


class _Unreadable(UnreadableRecord):
    """Of one run."""

    def __init__(self, run: Run, what: str) -> None:
        self.study_id = run.data.tags.get(STUDY_ID, "")
        self.what = f"run {run.info.run_id} ({run.info.run_name}) {what}"
        super().__init__(f"{self.what}.\n{REMEDY}")


def _at_least_one(studies: list[ConcludedStudy], unreadable: Sequence[_Unreadable]) -> list[ConcludedStudy]:
    """Those that could be read; the others are left out with a notice. If it is all of them, that is an error."""
    if unreadable and not studies:
        raise unreadable[0]
    for error in unreadable:
        _leave_out(error)
    return studies


def _leave_out(error: _Unreadable) -> None:
    warnings.warn(f"left out: {error.what}.\n{REMEDY}", Notice, stacklevel=2)
