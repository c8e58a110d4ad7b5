"""The record: MLflow. The only file that imports mlflow.

One experiment per dataset setting, a parent run per study, a child run per configuration. Only the driver writes,
and only when a study is concluded; delivery.py says how.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from oodbench.errors import TrackingFailed, Unreachable, UserError
from oodbench.record.notes import METHODS_VIEW, VIEW
from oodbench.record.parcel import DataInput, Entry, Parcel
from oodbench.record.reading import REPEAT_OF, read_study
from oodbench.study.record import StudyRecord
from oodbench.study.study import Study

CONNECT_SECONDS = 10
MOST_METRICS = 1000  # in one request
DATABASE = "mlflow.db"
SECRETS = ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")  # MLflow reads them by itself

T = TypeVar("T")


class Record:
    """A tracking server, or the embedded database under `directory` where no server is named."""

    def __init__(self, tracking_uri: str | None, directory: Path) -> None:
        if tracking_uri is not None and not tracking_uri.strip():
            raise Unreachable("--tracking-uri is empty.\nName a server, or leave it out to use the embedded database.")
        try:
            urlsplit(tracking_uri or "")
        except ValueError as error:
            raise Unreachable(
                f"--tracking-uri {tracking_uri} is not an address: {error}.\nFor example http://127.0.0.1:5000."
            ) from None
        self.directory = directory.resolve()
        self.embedded = tracking_uri is None
        self.uri = tracking_uri or f"sqlite:///{self.directory / DATABASE}"
        self.kept: dict[str, StudyRecord] = {}  # of this run, by study: what is shown while the server is away
        self._client: Any = None
        if not self.embedded:
            self.check_reachable()
            _ = self.client  # a server that does not work is found out before anything starts

    @property
    def address(self) -> str:
        """The URI as it may be shown: without a password."""
        shown = re.sub(r"://.*@", "://***@", self.uri)
        return re.sub(r"([?&](?:password|token)=)[^&]*", r"\1***", shown)

    @property
    def destination(self) -> str:
        """The URI as it may be stored, for parcels to find it again; empty for the embedded record."""
        return "" if self.embedded else self.address.replace("***@", "")

    @property
    def is_server(self) -> bool:
        return urlsplit(self.uri).scheme in ("http", "https")

    @property
    def is_empty(self) -> bool:
        return self.embedded and not (self.directory / DATABASE).exists()

    @property
    def client(self) -> Any:
        """Connected on first use; the embedded database is created once, by one process at a time."""
        if self._client is None:
            _quieten()
            from mlflow import MlflowClient

            try:
                with self.alone():
                    client = MlflowClient(tracking_uri=self.uri)
                    client.search_experiments(max_results=1)
            except _errors() as error:
                raise Unreachable(
                    f"the tracking store {self.address} does not work: {self._shown(error)}\n"
                    "Check --tracking-uri, or leave it out."
                ) from None
            self._client = client
        return self._client

    def ask(self, what: Callable[..., T], *arguments: Any, **more: Any) -> T:
        """Call MLflow; what goes wrong there, from a lost connection to a full disk, is a TrackingFailed."""
        try:
            return what(*arguments, **more)
        except _errors() as error:
            raise TrackingFailed(
                f"the tracking store {self.address} does not work: {self._shown(error)}\nTry again when it does."
            ) from None

    def _shown(self, error: Exception) -> str:
        """The first line, without passwords."""
        text = str(error).strip().partition("\n")[0]
        for secret in (urlsplit(self.uri).password, *(os.environ.get(name) for name in SECRETS)):
            text = text.replace(secret, "***") if secret else text
        return re.sub(r"://[^/\s]*@", "://***@", text)[:160]

    def check_reachable(self) -> None:
        """Whether anything answers at all; MLflow itself would try for long."""
        if not self.is_server:
            return
        try:
            with urlopen(re.sub(r"://.*@", "://", self.uri).rstrip("/") + "/health", timeout=CONNECT_SECONDS):
                pass
        except HTTPError:
            return  # something answers; what it is, MLflow will find out
        except (OSError, ValueError, HTTPException) as error:
            raise Unreachable(
                f"no tracking server answers at {self.address}: {self._shown(error)}.\n"
                "Start it, correct --tracking-uri, or leave it out to use the embedded database."
            ) from None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """The embedded database has one writer at a time; a server takes many."""
        if not self.embedded:
            yield
            return
        from filelock import FileLock

        self.directory.mkdir(parents=True, exist_ok=True)
        with FileLock(self.directory / "mlflow.lock"):
            yield

    def experiment_id(self, dataset_id: str) -> str | None:
        experiment = self.ask(self.client.get_experiment_by_name, dataset_id)
        if experiment is None:
            return None
        if experiment.lifecycle_stage == "deleted":  # through the page; its name stays taken
            self.ask(self.client.restore_experiment, experiment.experiment_id)
        return str(experiment.experiment_id)

    def finished(self, studies: Sequence[Study]) -> set[str]:
        """Those of the studies that are in the record, whole, by identity."""
        wanted = {study.study_id for study in studies}
        found = {self.experiment_id(dataset_id) for dataset_id in dict.fromkeys(study.dataset_id for study in studies)}
        runs = self.search(
            [one for one in found if one], "tags.`oodbench.kind` = 'study' AND attributes.status = 'FINISHED'"
        )
        return wanted & {run.data.tags["oodbench.study"] for run in runs}

    def studies(self, dataset_id: str, trials: int | None = None, seeds: int | None = None) -> list[StudyRecord]:
        """The concluded studies on a dataset setting, with this budget if one is named, of each label the newest, and
        then the repeats of these."""
        wanted = {"trials_granted": trials, "seeds": seeds}
        runs = [
            run
            for run in self._concluded(dataset_id)
            if all(value is None or run.data.params.get(name) == str(value) for name, value in wanted.items())
        ]
        newest = {run.data.tags["oodbench.label"]: run for run in runs if REPEAT_OF not in run.data.tags}
        shown = {run.data.tags["oodbench.study"] for run in newest.values()}
        repeats = {run.data.tags["oodbench.study"]: run for run in runs if run.data.tags.get(REPEAT_OF) in shown}
        return [self._read(run) for run in (*newest.values(), *repeats.values())]

    def records_of(self, studies: Sequence[Study]) -> list[StudyRecord]:
        """These studies as far as they are concluded, labelled as they are here, in whatever run they were recorded.

        What this run could not deliver yet is taken from what it kept.
        """
        found = dict(self.kept)
        try:
            newest = {
                run.data.tags["oodbench.study"]: run
                for dataset_id in dict.fromkeys(study.dataset_id for study in studies)
                for run in self._concluded(dataset_id)
            }
            found |= {one.study_id: self._read(newest[one.study_id]) for one in studies if one.study_id in newest}
        except TrackingFailed:
            if not found:
                raise
        return [replace(found[study.study_id], label=study.label) for study in studies if study.study_id in found]

    def keep(self, parcel: Parcel) -> None:
        """Remember a study that this run concluded."""
        import pandas as pd

        results = None if parcel.error else pd.read_parquet(parcel.artifacts / "results.parquet")
        self.kept[parcel.study] = read_study("", parcel.parent, parcel.concluded, results)

    def _concluded(self, dataset_id: str) -> list[Any]:
        """Parent runs, the newest last."""
        experiment = self.experiment_id(dataset_id)
        if experiment is None:
            return []
        runs = self.search([experiment], "tags.`oodbench.kind` = 'study' AND attributes.status != 'RUNNING'")
        return sorted(runs, key=lambda run: run.info.end_time)

    def find_study(self, prefix: str) -> str:
        """The run id of the one study whose run id begins so."""
        runs = [] if self.is_empty else self.search(self._experiments(), "tags.`oodbench.kind` = 'study'")
        found = [run.info.run_id for run in runs if prefix and run.info.run_id.startswith(prefix)]
        if len(found) != 1:
            raise UserError(
                f"{len(found) or 'no'} studies in {self.address} have a run id that begins with {prefix!r}.\n"
                "`oodbench leaderboard DATASET --json` names the runs."
            )
        return str(found[0])

    def study(self, prefix: str) -> tuple[str, StudyRecord]:
        """The one study whose run id begins so, and its dataset setting."""
        run_id = self.find_study(prefix)  # before there is a client, which would create a database
        run = self.ask(self.client.get_run, run_id)
        return str(self.ask(self.client.get_experiment, run.info.experiment_id).name), self._read(run)

    def labelled(self, label: str) -> list[tuple[str, StudyRecord]]:
        """The newest study with that label on every dataset setting that has one."""
        newest = {
            dataset_id: run
            for dataset_id in self.dataset_ids()
            for run in self._concluded(dataset_id)
            if run.data.tags["oodbench.label"] == label and REPEAT_OF not in run.data.tags
        }
        return [(dataset_id, self._read(run)) for dataset_id, run in newest.items()]

    def document(self, run_id: str, name: str) -> Any:
        """A JSON artifact of a run, or None where the run has no such artifact."""
        if name not in (artifact.path for artifact in self.ask(self.client.list_artifacts, run_id)):
            return None
        with tempfile.TemporaryDirectory() as folder:
            return json.loads(Path(self.ask(self.client.download_artifacts, run_id, name, folder)).read_text())

    def dataset_ids(self) -> list[str]:
        """The dataset settings that have studies."""
        found = self.ask(self.client.search_experiments, filter_string="tags.`oodbench.dataset` != ''")
        return [experiment.name for experiment in found]

    def page_of(self, experiment: str) -> str:
        """The part of an address that shows its studies in MLflow's page, in our view if the experiment has it."""
        has_view = VIEW + METHODS_VIEW in self.ask(self.client.get_experiment, experiment).tags
        view = f"&viewStateShareKey={METHODS_VIEW}" if has_view else ""
        return f"#/experiments/{experiment}/runs?workflowType=machine_learning{view}"

    def ensure_experiment(self, dataset_id: str, tags: Mapping[str, str]) -> str:
        found = self.experiment_id(dataset_id)
        if found is not None:
            return found
        location = (self.directory / "artifacts").as_uri() if self.embedded else None
        try:
            made = self.ask(self.client.create_experiment, dataset_id, artifact_location=location, tags=dict(tags))
        except TrackingFailed:  # another driver was faster
            found = self.experiment_id(dataset_id)
            if found is None:
                raise
            return found
        return str(made)

    def create_run(self, experiment: str, name: str, tags: Mapping[str, str], started: int) -> str:
        run = self.ask(self.client.create_run, experiment, start_time=started, run_name=name, tags=dict(tags))
        return str(run.info.run_id)

    def fill_run(self, run_id: str, entry: Entry, at: int) -> None:
        """Saying the same again changes nothing."""
        from mlflow.entities import Metric, Param, RunTag

        self.ask(
            self.client.log_batch,
            run_id,
            metrics=[Metric(key, value, at, 0) for key, value in entry.metrics.items()],
            params=[Param(key, value) for key, value in entry.params.items()],
            tags=[RunTag(key, value) for key, value in entry.tags.items()],
        )

    def add_series(self, run_id: str, series: Mapping[str, Sequence[tuple[int, float]]], at: int) -> None:
        """Metrics by step. Saying the same again changes nothing."""
        from mlflow.entities import Metric

        points = [Metric(key, value, at, step) for key, found in series.items() for step, value in found]
        for start in range(0, len(points), MOST_METRICS):
            self.ask(self.client.log_batch, run_id, metrics=points[start : start + MOST_METRICS])

    def add_inputs(self, run_id: str, inputs: Sequence[DataInput]) -> None:
        """MLflow's datasets. Saying the same again changes nothing."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        code = json.dumps({"tags": {"mlflow.source.type": "LOCAL", "mlflow.source.name": "oodbench"}})
        found = [
            DatasetInput(
                Dataset(one.name, one.digest, "code", code, schema=one.schema or None, profile=one.profile),
                [InputTag("mlflow.data.context", one.context)],
            )
            for one in inputs
        ]
        if found:
            self.ask(self.client.log_inputs, run_id, found)

    def add_artifacts(self, run_id: str, folder: Path) -> None:
        self.ask(self.client.log_artifacts, run_id, str(folder))

    def end_run(self, run_id: str, status: str, at: int) -> None:
        self.ask(self.client.set_terminated, run_id, status, at)

    def delete_run(self, run_id: str, at: int) -> None:
        self.end_run(run_id, "KILLED", at)  # a deleted run would otherwise stay RUNNING for ever
        self.ask(self.client.delete_run, run_id)

    def _experiments(self) -> list[str]:
        return [experiment.experiment_id for experiment in self.ask(self.client.search_experiments)]

    def search(self, experiments: list[str], condition: str) -> list[Any]:
        runs: list[Any] = []
        token = None
        while experiments:
            page = self.ask(self.client.search_runs, experiments, condition, max_results=1000, page_token=token)
            runs += page
            token = page.token
            if not token:
                break
        return runs

    def _read(self, run: Any) -> StudyRecord:
        import pandas as pd

        results = None
        if run.info.status == "FINISHED":
            with tempfile.TemporaryDirectory() as folder:
                path = self.ask(self.client.download_artifacts, run.info.run_id, "results.parquet", folder)
                results = pd.read_parquet(path)
        entry = Entry(run.info.run_name, run.info.status, run.data.metrics, run.data.params, run.data.tags)
        return read_study(run.info.run_id, entry, run.info.end_time, results)


def _errors() -> tuple[type[Exception], ...]:
    """What MLflow raises when its store or its server fails; the database's own errors come through in places."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return MlflowException, SQLAlchemyError, OSError


def _quieten() -> None:
    for name, value in {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    }.items():
        os.environ.setdefault(name, value)
    import mlflow  # noqa: F401  (configures its loggers on import)

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
