"""The record: MLflow. The only file that imports mlflow.

One experiment per dataset setting, a parent run per study, a child run per configuration. Only the driver writes,
and only when a study is concluded, so a run that is killed leaves nothing half-written behind.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from http.client import HTTPException
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from oodbench.dataset import Task
from oodbench.errors import Unreachable
from oodbench.metrics import summarize
from oodbench.outcome import Outcome
from oodbench.settings import as_dict

if TYPE_CHECKING:
    import pandas as pd

CONNECT_SECONDS = 10
VERSIONED = ("oodbench", "torch", "numpy", "pandas", "ray", "mlflow")
DATABASE = "mlflow.db"


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
    started: int
    results: pd.DataFrame | None


class Record:
    """A tracking server, or the embedded database under `directory` where no server is named."""

    def __init__(self, tracking_uri: str | None, directory: Path) -> None:
        self.directory = directory.resolve()
        self.embedded = tracking_uri is None
        self.uri = tracking_uri or f"sqlite:///{self.directory / DATABASE}"
        self._client: Any = None
        if not self.embedded:
            _check_reachable(self.uri)
            _ = self.client  # a server that does not work is found out before anything starts

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
                first_line = str(error).strip().partition("\n")[0][:160]
                raise Unreachable(
                    f"the tracking store {self.uri} does not work: {first_line}\nCheck --tracking-uri, or leave it out."
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
        return None if experiment is None else str(experiment.experiment_id)

    def finished(self, study: str) -> bool:
        """Whether a study of that identity is in the record, whole."""
        runs = self._search(
            self._experiments(), f"tags.`oodbench.study` = '{study}' AND attributes.status = 'FINISHED'"
        )
        return bool(runs)

    def studies(self, setting: str) -> list[StudyRecord]:
        """All concluded studies on a dataset setting, the newest first."""
        experiment = self.experiment_id(setting)
        if experiment is None:
            return []
        runs = self._search([experiment], "tags.`oodbench.kind` = 'study' AND attributes.status != 'RUNNING'")
        return [self._read(run) for run in sorted(runs, key=lambda run: -run.info.start_time)]

    def settings(self) -> list[str]:
        """The dataset settings that have studies."""
        return [
            experiment.name
            for experiment in self.client.search_experiments(filter_string="tags.`oodbench.dataset` != ''")
        ]

    def write(self, outcome: Outcome) -> str:
        """The parent run of the study, its children and its artifacts; returns the parent's id."""
        from mlflow.entities import Metric, Param, RunTag

        study, client = outcome.study, self.client
        experiment = self._ensure_experiment(outcome)
        self._remove_unfinished(experiment, study.identity)
        now = int(time.time() * 1000)
        parent = client.create_run(
            experiment,
            run_name=study.label,
            tags={"oodbench.kind": "study", "oodbench.study": study.identity},
        ).info.run_id
        client.log_batch(
            parent,
            metrics=[Metric(key, value, now, 0) for key, value in _study_metrics(outcome).items()],
            params=[Param(key, str(value)) for key, value in _study_params(outcome).items()],
            tags=[RunTag(key, str(value)) for key, value in _study_tags(outcome).items()],
        )
        for configuration in range(len(study.configurations)):
            child = client.create_run(
                experiment,
                run_name=f"{study.method_name} {configuration}",
                tags={"mlflow.parentRunId": parent, "oodbench.kind": "configuration"},
            ).info.run_id
            metrics, failed = _configuration_metrics(outcome, configuration)
            client.log_batch(
                child,
                metrics=[Metric(key, value, now, 0) for key, value in metrics.items()],
                params=[Param(key, str(value)) for key, value in study.configurations[configuration].items()],
            )
            client.set_terminated(child, "FAILED" if failed else "FINISHED")
        with tempfile.TemporaryDirectory() as folder:
            _write_artifacts(outcome, Path(folder))
            client.log_artifacts(parent, folder)
        client.set_terminated(parent, "FAILED" if outcome.error else "FINISHED")
        return str(parent)

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

        tags, results = run.data.tags, None
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
            trials=int(run.data.params["trials"]),
            seeds=int(run.data.params["seeds"]),
            failed_trainings=int(run.data.metrics["failed_trainings"]),
            fingerprint=tags["oodbench.fingerprint"],
            information=tags["oodbench.information"],
            started=run.info.start_time,
            results=results,
        )


def _study_metrics(outcome: Outcome) -> dict[str, float]:
    ledger = outcome.ledger
    metrics: dict[str, float] = {
        key: ledger[key] for key in ("trainings", "failed_trainings", "gradient_steps", "row_visits", "seconds")
    }
    if outcome.selection:
        metrics["validation_score"] = outcome.selection.score
        summary = summarize(outcome.results, outcome.study.dataset.task)
        for name in summary:
            metrics[str(name)] = float(summary[name].mean())
            metrics[f"{name}_spread"] = float(summary[name].std(ddof=1))
    return {key: value for key, value in metrics.items() if math.isfinite(value)}


def _study_params(outcome: Outcome) -> dict[str, Any]:
    study = outcome.study
    params: dict[str, Any] = {"method": study.method_name, "dataset": study.dataset_name}
    params |= as_dict(study.dataset)
    params |= {"model": study.setup.model.name}
    params |= {f"model.{key}": value for key, value in as_dict(study.setup.model).items()}
    params |= {f"training.{key}": value for key, value in as_dict(study.setup.recipe).items()}
    params |= {"trials": outcome.ledger["trials"], "seeds": study.budget.seeds, "seed": study.budget.seed}
    params |= {"selector": study.selector, "device": study.setup.device}
    if outcome.selection:
        chosen = study.configurations[outcome.selection.configuration]
        params |= {"chosen": outcome.selection.configuration}
        params |= {f"chosen.{key}": value for key, value in chosen.items()}
    return params


def _study_tags(outcome: Outcome) -> dict[str, Any]:
    study = outcome.study
    tags = {
        "oodbench.method": study.method_name,
        "oodbench.dataset": study.dataset_name,
        "oodbench.label": study.label,
        "oodbench.task": study.dataset.task,
        "oodbench.fingerprint": study.training.fingerprint,
        "oodbench.information": ", ".join(study.information),
        "oodbench.git_commit": _git_commit(),
        "oodbench.python": platform.python_version(),
    }
    tags |= {f"oodbench.version.{package}": version(package) for package in VERSIONED}
    if outcome.opening:
        tags["oodbench.test_opened_at"] = outcome.opening.opened_at
        tags["oodbench.test_fingerprint"] = outcome.opening.test_fingerprint
        tags["oodbench.test_opened_before_selection"] = str(outcome.opening.before_selection).lower()
    if outcome.error:
        tags["oodbench.error"] = outcome.error[:4000]
    return tags


def _configuration_metrics(outcome: Outcome, configuration: int) -> tuple[dict[str, float], bool]:
    failed = sum(failure["configuration"] == configuration for failure in outcome.failures)
    results = outcome.results
    scores = results[(results["part"] == "validation") & (results["configuration"] == configuration)]
    metrics = {"failed_trainings": float(failed)}
    if not scores.empty:
        by_seed = scores.groupby("seed")["error"]
        metrics["validation_mean_error"] = float(by_seed.mean().mean())
        metrics["validation_worst_error"] = float(by_seed.max().mean())
    if outcome.selection:
        metrics["chosen"] = float(outcome.selection.configuration == configuration)
    return {key: value for key, value in metrics.items() if math.isfinite(value)}, failed > 0


def _write_artifacts(outcome: Outcome, folder: Path) -> None:
    from safetensors.numpy import save_file

    outcome.results.to_parquet(folder / "results.parquet", index=False)
    documents: dict[str, Any] = {
        "ledger": outcome.ledger,
        "failures": outcome.failures,
        "configurations": outcome.study.configurations,
    }
    if outcome.selection and outcome.opening:
        documents |= {"selection": outcome.selection.as_dict(), "opening": asdict(outcome.opening)}
    for name, content in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2, default=str))
    (folder / "models").mkdir()
    for seed, model in outcome.models.items():
        parameters = getattr(model, "parameters", None)
        if parameters is not None:  # foreign predictors have no form that is safe to load, and are not stored
            save_file(
                {"parameters": parameters},
                folder / "models" / f"seed-{seed}.safetensors",
                metadata={"family": model.model.name, **{k: str(v) for k, v in as_dict(model.model).items()}},  # type: ignore[attr-defined]
            )


def _git_commit() -> str:
    """The commit of the working directory, if it is one of a repository."""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _check_reachable(uri: str) -> None:
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https"):
        return
    try:
        with urlopen(uri.rstrip("/") + "/health", timeout=CONNECT_SECONDS):
            pass
    except HTTPError:
        return  # something answers; what it is, MLflow will find out
    except (OSError, ValueError, HTTPException) as error:
        raise Unreachable(
            f"no tracking server answers at {uri}: {error}.\n"
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
