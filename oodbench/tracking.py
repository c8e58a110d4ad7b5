"""The record: MLflow. The only file that imports mlflow.

One experiment per dataset setting, a parent run per study, a child run per configuration. Only the driver writes,
and only when a study is concluded, so a run that is killed leaves nothing half-written behind.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from oodbench.dataset import Task
from oodbench.entries import configuration_metrics, study_metrics, study_params, study_tags, write_artifacts
from oodbench.errors import Unreachable, UserError, WorkError
from oodbench.ledger import Ledger
from oodbench.outcome import Outcome
from oodbench.settings import as_dict
from oodbench.study import Study

if TYPE_CHECKING:
    import pandas as pd

CONNECT_SECONDS = 10
DATABASE = "mlflow.db"
VERSION = "oodbench.version."


@dataclass(frozen=True, eq=False)
class StudyRecord:
    """A study as the record has it."""

    run_id: str
    study: str  # its identity
    label: str
    task: Task
    status: str  # FINISHED or FAILED
    reason: str
    trials: int
    seeds: int
    failed_trainings: int
    fingerprint: str
    information: str
    results: pd.DataFrame | None
    concluded: str = ""  # the day, in UTC
    versions: Mapping[str, str] = field(default_factory=dict)
    notice: str = ""  # what a reader must know of the data
    test_fingerprint: str = ""
    ledger: Ledger = field(default_factory=Ledger)


class Record:
    """A tracking server, or the embedded database under `directory` where no server is named."""

    def __init__(self, tracking_uri: str | None, directory: Path) -> None:
        if tracking_uri is not None and not tracking_uri.strip():
            raise Unreachable("--tracking-uri is empty.\nName a server, or leave it out to use the embedded database.")
        self.directory = directory.resolve()
        self.embedded = tracking_uri is None
        self.uri = tracking_uri or f"sqlite:///{self.directory / DATABASE}"
        self._client: Any = None
        if not self.embedded:
            _check_reachable(self.uri, self.address)
            _ = self.client  # a server that does not work is found out before anything starts

    @property
    def address(self) -> str:
        """The URI as it may be shown: without a password."""
        return re.sub(r"://[^/@]*@", "://***@", self.uri)

    @property
    def is_empty(self) -> bool:
        return self.embedded and not (self.directory / DATABASE).exists()

    @property
    def client(self) -> Any:
        """Connected on first use; the embedded database is created once, by one process at a time."""
        if self._client is None:
            _quieten()
            from mlflow import MlflowClient
            from mlflow.exceptions import MlflowException

            try:
                with self._alone():
                    client = MlflowClient(tracking_uri=self.uri)
                    client.search_experiments(max_results=1)
            except (MlflowException, OSError) as error:
                raise Unreachable(
                    f"the tracking store {self.address} does not work: {_first_line(error)}\n"
                    "Check --tracking-uri, or leave it out."
                ) from None
            self._client = client
        return self._client

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        if not self.embedded:
            yield
            return
        from filelock import FileLock

        self.directory.mkdir(parents=True, exist_ok=True)
        with FileLock(self.directory / "mlflow.lock"):
            yield

    def experiment_id(self, setting: str) -> str | None:
        experiment = self.client.get_experiment_by_name(setting)
        if experiment is None:
            return None
        if experiment.lifecycle_stage == "deleted":  # through the page; its name stays taken
            self.client.restore_experiment(experiment.experiment_id)
        return str(experiment.experiment_id)

    def finished(self, study: str) -> bool:
        """Whether a study of that identity is in the record, whole."""
        runs = self._search(
            self._experiments(), f"tags.`oodbench.study` = '{study}' AND attributes.status = 'FINISHED'"
        )
        return bool(runs)

    def studies(self, setting: str, trials: int | None = None, seeds: int | None = None) -> list[StudyRecord]:
        """The concluded studies on a dataset setting, with this budget if one is named, of each label the newest."""
        wanted = {"trials_granted": trials, "seeds": seeds}
        newest = {
            run.data.tags["oodbench.label"]: run
            for run in self._concluded(setting)
            if all(value is None or run.data.params.get(name) == str(value) for name, value in wanted.items())
        }
        return [self._read(run) for run in newest.values()]

    def records_of(self, studies: Sequence[Study]) -> list[StudyRecord]:
        """These studies as far as they are concluded, labelled as they are here, in whatever run they were recorded."""
        newest = {
            run.data.tags["oodbench.study"]: run
            for setting in dict.fromkeys(study.setting for study in studies)
            for run in self._concluded(setting)
        }
        return [
            replace(self._read(newest[study.identity]), label=study.label)
            for study in studies
            if study.identity in newest
        ]

    def _concluded(self, setting: str) -> list[Any]:
        """Parent runs, the newest last."""
        experiment = self.experiment_id(setting)
        if experiment is None:
            return []
        runs = self._search([experiment], "tags.`oodbench.kind` = 'study' AND attributes.status != 'RUNNING'")
        return sorted(runs, key=lambda run: run.info.end_time)

    def find_study(self, prefix: str) -> str:
        """The run id of the one study whose run id begins so."""
        runs = [] if self.is_empty else self._search(self._experiments(), "tags.`oodbench.kind` = 'study'")
        found = [run.info.run_id for run in runs if prefix and run.info.run_id.startswith(prefix)]
        if len(found) != 1:
            raise UserError(
                f"{len(found) or 'no'} studies in {self.address} have a run id that begins with {prefix!r}.\n"
                "`oodbench leaderboard DATASET --json` names the runs."
            )
        return str(found[0])

    def document(self, run_id: str, name: str) -> Any:
        """A JSON artifact of a run, or None where the run has no such artifact."""
        if name not in (artifact.path for artifact in self.client.list_artifacts(run_id)):
            return None
        with tempfile.TemporaryDirectory() as folder:
            return json.loads(Path(self.client.download_artifacts(run_id, name, folder)).read_text())

    def settings(self) -> list[str]:
        """The dataset settings that have studies."""
        return [
            experiment.name
            for experiment in self.client.search_experiments(filter_string="tags.`oodbench.dataset` != ''")
        ]

    def write(self, outcome: Outcome) -> None:
        """The parent run of the study, its children and its artifacts."""
        from mlflow.exceptions import MlflowException

        try:
            self._write(outcome)
        except (MlflowException, OSError) as error:
            raise WorkError(
                f"{outcome.study.label} could not be recorded in {self.address}: {_first_line(error)}\n"
                "Its results are kept: the same command records them."
            ) from error

    def _write(self, outcome: Outcome) -> None:
        from mlflow.entities import Metric, Param, RunTag

        study, client = outcome.study, self.client
        experiment = self._ensure_experiment(outcome)
        self._remove_unfinished(experiment, study.identity)
        now = int(time.time() * 1000)
        parent = client.create_run(
            experiment,
            start_time=int(outcome.started * 1000),
            run_name=study.label,
            tags={"oodbench.kind": "study", "oodbench.study": study.identity},
        ).info.run_id
        client.log_batch(
            parent,
            metrics=[Metric(key, value, now, 0) for key, value in study_metrics(outcome).items()],
            params=[Param(key, str(value)) for key, value in study_params(outcome).items()],
            tags=[RunTag(key, str(value)) for key, value in study_tags(outcome).items()],
        )
        for configuration in range(len(study.configurations)):
            child = client.create_run(
                experiment,
                run_name=f"{study.method_name} {configuration}",
                tags={"mlflow.parentRunId": parent, "oodbench.kind": "configuration"},
            ).info.run_id
            metrics, failed = configuration_metrics(outcome, configuration)
            client.log_batch(
                child,
                metrics=[Metric(key, value, now, 0) for key, value in metrics.items()],
                params=[Param(key, str(value)) for key, value in study.configurations[configuration].items()],
            )
            client.set_terminated(child, "FAILED" if failed else "FINISHED")
        with tempfile.TemporaryDirectory() as folder:
            write_artifacts(outcome, Path(folder))
            client.log_artifacts(parent, folder)
        client.set_terminated(parent, "FAILED" if outcome.error else "FINISHED")

    def _ensure_experiment(self, outcome: Outcome) -> str:
        from mlflow.exceptions import MlflowException

        study = outcome.study
        found = self.experiment_id(study.setting)
        if found is not None:
            return found
        location = (self.directory / "artifacts").as_uri() if self.embedded else None
        settings = json.dumps(as_dict(study.dataset))
        tags = {"oodbench.dataset": study.dataset_name, "oodbench.settings": settings}
        try:
            return str(self.client.create_experiment(study.setting, artifact_location=location, tags=tags))
        except MlflowException:  # another driver was faster
            found = self.experiment_id(study.setting)
            if found is None:
                raise
            return found

    def _remove_unfinished(self, experiment: str, study: str) -> None:
        """What a killed driver left of this study while it wrote."""
        for parent in self._search(
            [experiment], f"tags.`oodbench.study` = '{study}' AND attributes.status = 'RUNNING'"
        ):
            for run in [
                *self._search([experiment], f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'"),
                parent,
            ]:
                self.client.delete_run(run.info.run_id)

    def _experiments(self) -> list[str]:
        return [experiment.experiment_id for experiment in self.client.search_experiments()]

    def _search(self, experiments: list[str], condition: str) -> list[Any]:
        runs: list[Any] = []
        token = None
        while experiments:
            page = self.client.search_runs(experiments, condition, max_results=1000, page_token=token)
            runs += page
            token = page.token
            if not token:
                break
        return runs

    def _read(self, run: Any) -> StudyRecord:
        import pandas as pd

        tags, params, metrics, results = run.data.tags, run.data.params, run.data.metrics, None
        if run.info.status == "FINISHED":
            with tempfile.TemporaryDirectory() as folder:
                results = pd.read_parquet(self.client.download_artifacts(run.info.run_id, "results.parquet", folder))
        return StudyRecord(
            run_id=run.info.run_id,
            study=tags["oodbench.study"],
            label=tags["oodbench.label"],
            task=tags["oodbench.task"],
            status=run.info.status,
            reason=tags.get("oodbench.error", ""),
            trials=int(params["trials"]),
            seeds=int(params["seeds"]),
            failed_trainings=int(metrics["failed_trainings"]),
            fingerprint=tags["oodbench.fingerprint"],
            information=tags["oodbench.information"],
            notice=tags.get("oodbench.notice", ""),
            test_fingerprint=tags.get("oodbench.test_fingerprint", ""),
            ledger=Ledger(
                trials_granted=int(params.get("trials_granted", params["trials"])),  # once it was not written down
                trainings=int(metrics["trainings"]),
                gradient_steps=int(metrics["gradient_steps"]),
                row_visits=int(metrics["row_visits"]),
                seconds=metrics["seconds"],
                device=params["device"],
            ),
            results=results,
            concluded=datetime.fromtimestamp(run.info.end_time / 1000, UTC).date().isoformat(),
            versions={key.removeprefix(VERSION): tags[key] for key in sorted(tags) if key.startswith(VERSION)},
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:160]


def _check_reachable(uri: str, shown: str) -> None:
    if urlsplit(uri).scheme not in ("http", "https"):
        return
    try:
        with urlopen(uri.rstrip("/") + "/health", timeout=CONNECT_SECONDS):
            pass
    except HTTPError:
        return  # something answers; what it is, MLflow will find out
    except (OSError, ValueError, HTTPException) as error:
        raise Unreachable(
            f"no tracking server answers at {shown}: {error}.\n"
            "Start it, correct --tracking-uri, or leave it out to use the embedded database."
        ) from None


def _quieten() -> None:
    for name, value in {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    }.items():
        os.environ.setdefault(name, value)
    import mlflow  # noqa: F401  (configures its loggers on import)

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
