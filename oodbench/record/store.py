"""The connection to MLflow: one experiment per dataset setting, a run per study, in it a run per configuration.

What goes wrong there is a TrackingFailed. Only the driver writes, and only when a study is concluded; delivery.py says
how, and tracking.py what is asked.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

from oodbench.errors import Notice, TrackingFailed, Unreachable
from oodbench.record.database import ensure_database
from oodbench.record.entry import DataInput, Entry
from oodbench.record.quick_writes import QuickWrites
from oodbench.record.schema import DATA_CONTEXT, SOURCE_NAME, SOURCE_TYPE
from oodbench.study.directory import make_folder
from oodbench.texts import SECRET, printable, redact, without_user

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

CONNECT_SECONDS = 10
MOMENT_SECONDS = 2  # to wait for the lock without a word
MOST_METRICS = 1000  # in one request
DATABASE = "mlflow.db"
DATABASES = ("postgresql", "mysql", "mssql")  # that MLflow takes besides sqlite
SECRETS = ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")  # MLflow reads them by itself

T = TypeVar("T")


class Store:
    """A tracking server, or the embedded database under `directory` where no server is named."""

    def __init__(self, tracking_uri: str | None, directory: Path) -> None:
        if tracking_uri is not None and not tracking_uri.strip():
            raise Unreachable("--tracking-uri is empty.\nName a server, or leave it out to use the embedded database.")
        try:
            urlsplit(tracking_uri or "")
        except ValueError as error:
            raise Unreachable(
                f"--tracking-uri {redact(tracking_uri or '')} is not an address: {error}.\n"
                "For example http://127.0.0.1:5000."
            ) from None
        self.directory = directory.resolve()
        self.embedded = tracking_uri is None
        self.uri = tracking_uri or f"sqlite:///{self.directory / DATABASE}"
        self._client: MlflowClient | None = None
        self._quick: QuickWrites | None = None
        if not self.embedded:
            self.check_reachable()
            _ = self.client  # a server that does not work is found out before anything starts

    @property
    def address(self) -> str:
        """The URI as it may be shown: without a password."""
        return redact(self.uri)

    @property
    def destination(self) -> str:
        """The URI as it may be stored, for parcels to find it again; empty for the embedded record."""
        return "" if self.embedded else without_user(self.uri)

    @property
    def is_server(self) -> bool:
        return urlsplit(self.uri).scheme in ("http", "https")

    @property
    def is_empty(self) -> bool:
        return self.embedded and not (self.directory / DATABASE).exists()

    @property
    def client(self) -> MlflowClient:
        """Connected on first use; the embedded database is created once, by one process at a time."""
        if self._client is None:
            _quieten()
            from mlflow import MlflowClient

            try:
                with self.alone():
                    if self.embedded:
                        ensure_database(self.directory / DATABASE)
                        self._quick = QuickWrites(self.directory / DATABASE)
                    client = MlflowClient(tracking_uri=self.uri)
                    client.search_experiments(max_results=1)
            except Exception as error:  # migrations of a damaged database raise whatever their parts raise
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
        text = redact(str(error).strip().partition("\n")[0])
        password = urlsplit(self.uri).password or ""
        for secret in (password, unquote(password), *(os.environ.get(name) for name in SECRETS)):
            text = text.replace(secret, SECRET) if secret else text
        return printable(text)[:160]

    def check_reachable(self) -> None:
        """Whether anything answers at all; MLflow itself would try for long."""
        if urlsplit(self.uri).scheme.partition("+")[0] in DATABASES:
            self._check_database()
        if not self.is_server:
            return
        try:
            with urlopen(without_user(self.uri).rstrip("/") + "/health", timeout=CONNECT_SECONDS):
                pass
        except HTTPError:
            return  # something answers; what it is, MLflow will find out
        except (OSError, ValueError, HTTPException) as error:
            raise Unreachable(
                f"no tracking server answers at {self.address}: {self._shown(error)}.\n"
                "Start it, correct --tracking-uri, or leave it out to use the embedded database."
            ) from None

    def _check_database(self) -> None:
        """MLflow would try for minutes, without a word."""
        from sqlalchemy import NullPool, create_engine
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with create_engine(self.uri, poolclass=NullPool).connect():
                pass
        except ImportError as error:
            raise Unreachable(
                f"{self.address} needs a Python package that is not installed: {error.name or self._shown(error)}.\n"
                "Install it, correct --tracking-uri, or leave it out to use the embedded database."
            ) from None
        except SQLAlchemyError as error:
            raise Unreachable(
                f"no database answers at {self.address}: {self._shown(error)}.\n"
                "Start it, correct --tracking-uri, or leave it out to use the embedded database."
            ) from None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """The embedded database has one writer at a time; a server takes many."""
        if not self.embedded:
            yield
            return
        from filelock import FileLock, Timeout

        make_folder(self.directory)
        lock = FileLock(self.directory / "mlflow.lock")
        try:
            lock.acquire(timeout=MOMENT_SECONDS)
        except Timeout:
            warnings.warn(f"waiting for another driver that writes to {self.address}", Notice, stacklevel=3)
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def many_writes(self) -> contextlib.AbstractContextManager[None]:
        """For many runs; call it when nobody else writes."""
        return self._quick.begun() if self._quick else contextlib.nullcontext()

    def experiment_id(self, dataset_id: str) -> str | None:
        experiment = self.ask(self.client.get_experiment_by_name, dataset_id)
        if experiment is None:
            return None
        if experiment.lifecycle_stage == "deleted":  # through the page; its name stays taken
            self.ask(self.client.restore_experiment, experiment.experiment_id)
        return str(experiment.experiment_id)

    def ensure_experiment(self, dataset_id: str, tags: Mapping[str, str]) -> str:
        there = self.experiment_id(dataset_id)
        if there is not None:
            return there
        location = (self.directory / "artifacts").as_uri() if self.embedded else None
        try:
            made = self.ask(self.client.create_experiment, dataset_id, artifact_location=location, tags=dict(tags))
        except TrackingFailed:  # another driver was faster
            there = self.experiment_id(dataset_id)
            if there is None:
                raise
            return there
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

        points = [Metric(key, value, at, step) for key, curve in series.items() for step, value in curve]
        for start in range(0, len(points), MOST_METRICS):
            self.ask(self.client.log_batch, run_id, metrics=points[start : start + MOST_METRICS])

    def add_inputs(self, run_id: str, inputs: Sequence[DataInput]) -> None:
        """MLflow's datasets. Saying the same again changes nothing."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        code = json.dumps({"tags": {SOURCE_TYPE: "LOCAL", SOURCE_NAME: "oodbench"}})
        described = [
            DatasetInput(
                Dataset(data.name, data.digest, "code", code, schema=data.schema or None, profile=data.profile),
                [InputTag(DATA_CONTEXT, data.context)],
            )
            for data in inputs
        ]
        if described:
            self.ask(self.client.log_inputs, run_id, described)

    def add_artifacts(self, run_id: str, folder: Path) -> None:
        self.ask(self.client.log_artifacts, run_id, str(folder))

    def end_run(self, run_id: str, status: str, at: int) -> None:
        self.ask(self.client.set_terminated, run_id, status, at)

    def delete_run(self, run_id: str, at: int) -> None:
        self.end_run(run_id, "KILLED", at)  # a deleted run would otherwise stay RUNNING for ever
        self.ask(self.client.delete_run, run_id)

    def search(self, experiments: Sequence[str], condition: str) -> list[Run]:
        runs: list[Run] = []
        token = None
        while experiments:
            page = self.ask(self.client.search_runs, list(experiments), condition, max_results=1000, page_token=token)
            runs += page
            token = page.token
            if not token:
                break
        return runs


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
    # it tells every error of a database with its traceback, and so do we, in two lines
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
