"""What the record says of a study: metrics, parameters, tags and artifacts."""

from __future__ import annotations

import itertools
import json
import math
import platform
import subprocess
from collections import Counter
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodbench.board.metrics import summarize, summarize_stability
from oodbench.record.model_files import write_model
from oodbench.record.notes import hparams_text, model_tags
from oodbench.record.reading import USED
from oodbench.settings.fields import as_dict
from oodbench.settings.space import fixed_text
from oodbench.study.outcome import Outcome
from oodbench.study.reproduce import command_for

if TYPE_CHECKING:
    import pandas as pd

ENVIRONMENTS = "environments.json"
OF_OTHER_PARTS = {
    "test/train_accuracy": "train_accuracy",
    "test_stability/validation_stability": "validation/stability",
}
VERSIONED = ("oodbench", "torch", "numpy", "pandas", "ray", "mlflow")


def study_metrics(outcome: Outcome) -> dict[str, float]:
    """In the order in which MLflow's page of a run lists them.

    What stands before a slash is a section of its charts; these are sorted by name, and `test` is to be the first.
    """
    ledger = outcome.ledger
    metrics: dict[str, float] = {}
    spread: dict[str, float] = {}
    if outcome.selection:
        of_test = summarize(outcome.results, outcome.study.dataset.task).rename(columns=lambda name: f"test/{name}")
        stability = summarize_stability(outcome.results).rename(columns=lambda name: f"test_stability/{name}")
        per_seed = of_test.join(stability).rename(columns=OF_OTHER_PARTS)
        metrics = {str(name): float(values.mean()) for name, values in per_seed.items()}
        spread = {f"test_spread/{str(name).split('/')[-1]}": float(per_seed[name].std(ddof=1)) for name in per_seed}
    metrics |= {"failed_trainings": float(ledger["failed_trainings"])}
    metrics |= {f"{USED}{key}": ledger[key] for key in ("trainings", "seconds", "gradient_steps", "row_visits")}
    return {key: value for key, value in (metrics | spread).items() if math.isfinite(value)}


def search_series(outcome: Outcome) -> dict[str, list[tuple[int, float]]]:
    """The best score among the configurations up to each."""
    of = "oracle" if outcome.study.selector == "oracle" else "validation"
    scores = sorted(outcome.selection.scores.items()) if outcome.selection else []
    best = itertools.accumulate((score for _, score in scores), min)
    return {f"{of}/best_score": [(index, value) for (index, _), value in zip(scores, best, strict=True)]}


def study_params(outcome: Outcome) -> dict[str, Any]:
    study = outcome.study
    params: dict[str, Any] = {"method": study.method_name, "dataset": study.dataset_name}
    params |= {f"dataset.{key}": value for key, value in as_dict(study.dataset).items()}
    params |= {f"fixed.{key}": fixed_text(value) for key, value in study.fixed.items()}
    params |= {"model": study.setup.model.name}
    params |= {f"model.{key}": value for key, value in as_dict(study.setup.model).items()}
    params |= {f"recipe.{key}": value for key, value in as_dict(study.setup.recipe).items()}
    params |= {"trials_granted": study.budget.trials}
    params |= {"trials": outcome.ledger["trials"], "seeds": study.budget.seeds, "seed": study.budget.seed}
    params |= {key: outcome.ledger[key] for key in ("search", "scheduler", "budget_seconds", "complete_trials")}
    params |= {"repeat": study.budget.repeat}
    params |= {"selector": study.selector, "device": study.setup.device}
    if outcome.selection:
        chosen = study.configurations[outcome.selection.configuration]
        params |= {"chosen": outcome.selection.configuration}
        params |= {f"chosen.{key}": value for key, value in chosen.items()}
    if outcome.stability:
        params |= {"stability.alpha0": outcome.stability.alpha0}
    return params


def study_tags(outcome: Outcome) -> dict[str, Any]:
    study = outcome.study
    tags = {
        "oodbench.method": study.method_name,
        "oodbench.dataset": study.dataset_name,
        "oodbench.label": study.label,
        "oodbench.task": study.dataset.task,
        "oodbench.search": study.search_id,
        "oodbench.fingerprint": study.data.fingerprint,
        "oodbench.information": ", ".join(study.information),
        "oodbench.notice": study.dataset.notice,
        "oodbench.command": command_for(study),
        "oodbench.git_commit": _git_commit(),
        "mlflow.source.name": "oodbench run",
        "mlflow.source.type": "LOCAL",
        "oodbench.python": platform.python_version(),
    }
    tags |= {f"oodbench.version.{package}": version(package) for package in VERSIONED}
    if outcome.opening:
        tags["oodbench.test_opened_at"] = outcome.opening.opened_at
        tags["oodbench.test_fingerprint"] = outcome.opening.test_fingerprint
        tags["oodbench.test_opened_before_selection"] = str(outcome.opening.before_selection).lower()
    if outcome.selection:
        tags["oodbench.chosen"] = hparams_text(study.configurations[outcome.selection.configuration])
        tags |= model_tags(outcome)
        tags["mlflow.loggedArtifacts"] = json.dumps([{"path": ENVIRONMENTS, "type": "table"}])
    if study.budget.repeat:
        tags["oodbench.repeat_of"] = study.repeat_of
    if outcome.error:
        tags["oodbench.error"] = outcome.error[:4000]
    return tags


def configuration_metrics(outcome: Outcome) -> list[dict[str, float]]:
    """Of every configuration, in their order."""
    failed = Counter(failure["configuration"] for failure in outcome.failures)
    metrics: list[dict[str, float]] = [{} for _ in outcome.study.configurations]
    scores = outcome.results[outcome.results["part"] == "validation"]
    by_seed = scores.groupby(["configuration", "seed"])["error"].agg(["mean", "max"])
    for index, row in by_seed.groupby("configuration").mean().iterrows():
        of_one = metrics[int(str(index))]  # MLflow's plots begin with the first metric
        of_one |= {"validation_worst_error": float(row["max"]), "validation_mean_error": float(row["mean"])}
    for index, of_one in enumerate(metrics):
        of_one["failed_trainings"] = float(failed[index])
        if outcome.selection:
            of_one["chosen"] = float(outcome.selection.configuration == index)
    return [{key: value for key, value in of_one.items() if math.isfinite(value)} for of_one in metrics]


def write_artifacts(outcome: Outcome, folder: Path) -> None:
    outcome.results.to_parquet(folder / "results.parquet", index=False)
    documents: dict[str, Any] = {
        "ledger": outcome.ledger,
        "failures": outcome.failures,
        "configurations": outcome.study.configurations,
    }
    if outcome.selection and outcome.opening:
        documents |= {"selection": outcome.selection.as_dict(), "opening": asdict(outcome.opening)}
        (folder / ENVIRONMENTS).write_text(_environment_table(outcome.results))
    if outcome.stability:
        documents |= {"stability": outcome.stability.as_dict()}
    for name, content in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2, default=str))
    study = outcome.study
    features = study.data.train[study.seeds[0]][0].x.shape[1]
    for seed, model in outcome.kept_models.items():
        write_model(model, folder / "models" / f"seed-{seed}", study.dataset.task, study.dataset.columns, features)


def _environment_table(results: pd.DataFrame) -> str:
    """Scores of the chosen configuration on every test environment, means over seeds, as MLflow shows tables."""
    test = results[results["chosen"] & (results["part"] == "test")].dropna(axis="columns", how="all")
    scores = [name for name in ("error", "accuracy", "f1", "stability", "ods") if name in test]
    table = test.groupby("environment", sort=False)[[*scores, "rows"]].mean().reset_index()
    return str(table.to_json(orient="split", index=False, double_precision=6))


def _git_commit() -> str:
    """The commit of the working directory, if it is one of a repository."""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
