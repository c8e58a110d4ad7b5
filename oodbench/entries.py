"""What the record says of a study: metrics, parameters, tags and artifacts."""

from __future__ import annotations

import json
import math
import platform
import subprocess
from collections import Counter
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from oodbench.method import Storable
from oodbench.metrics import summarize, summarize_stability
from oodbench.outcome import Outcome
from oodbench.reproduce import command_for
from oodbench.settings import as_dict
from oodbench.space import fixed_text

VERSIONED = ("oodbench", "torch", "numpy", "pandas", "ray", "mlflow")


def study_metrics(outcome: Outcome) -> dict[str, float]:
    ledger = outcome.ledger
    metrics: dict[str, float] = {
        key: ledger[key] for key in ("trainings", "failed_trainings", "gradient_steps", "row_visits", "seconds")
    }
    if outcome.selection:
        metrics["validation_score"] = outcome.selection.score
        for summary in (summarize(outcome.results, outcome.study.dataset.task), summarize_stability(outcome.results)):
            for name in summary:
                metrics[str(name)] = float(summary[name].mean())
                metrics[f"{name}_spread"] = float(summary[name].std(ddof=1))
    return {key: value for key, value in metrics.items() if math.isfinite(value)}


def study_params(outcome: Outcome) -> dict[str, Any]:
    study = outcome.study
    params: dict[str, Any] = {"method": study.method_name, "dataset": study.dataset_name}
    params |= {f"dataset.{key}": value for key, value in as_dict(study.dataset).items()}
    params |= {f"fixed.{key}": fixed_text(value) for key, value in study.fixed.items()}
    params |= {"model": study.setup.model.name}
    params |= {f"model.{key}": value for key, value in as_dict(study.setup.model).items()}
    params |= {f"training.{key}": value for key, value in as_dict(study.setup.recipe).items()}
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
        "oodbench.search": study.search_identity,
        "oodbench.fingerprint": study.training.fingerprint,
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
    if study.budget.repeat:
        tags["oodbench.repeat_of"] = study.repeat_of
    if outcome.error:
        tags["oodbench.error"] = outcome.error[:4000]
    return tags


def configuration_metrics(outcome: Outcome) -> list[dict[str, float]]:
    """Of every configuration, in their order."""
    failed = Counter(failure["configuration"] for failure in outcome.failures)
    metrics = [{"failed_trainings": float(failed[index])} for index in range(len(outcome.study.configurations))]
    scores = outcome.results[outcome.results["part"] == "validation"]
    by_seed = scores.groupby(["configuration", "seed"])["error"].agg(["mean", "max"])
    for index, row in by_seed.groupby("configuration").mean().iterrows():
        of_one = metrics[int(str(index))]
        of_one |= {"validation_mean_error": float(row["mean"]), "validation_worst_error": float(row["max"])}
    if outcome.selection:
        for index, of_one in enumerate(metrics):
            of_one["chosen"] = float(outcome.selection.configuration == index)
    return [{key: value for key, value in of_one.items() if math.isfinite(value)} for of_one in metrics]


def write_artifacts(outcome: Outcome, folder: Path) -> None:
    from safetensors.numpy import save_file

    outcome.results.to_parquet(folder / "results.parquet", index=False)
    documents: dict[str, Any] = {
        "ledger": outcome.ledger,
        "failures": outcome.failures,
        "configurations": outcome.study.configurations,
    }
    if outcome.selection and outcome.opening:
        documents |= {"selection": outcome.selection.as_dict(), "opening": asdict(outcome.opening)}
    if outcome.stability:
        documents |= {"stability": outcome.stability.as_dict()}
    for name, content in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2, default=str))
    (folder / "models").mkdir()
    for seed, model in outcome.models.items():
        if isinstance(model, Storable):
            save_file(model.arrays(), folder / "models" / f"seed-{seed}.safetensors", metadata=model.about())


def _git_commit() -> str:
    """The commit of the working directory, if it is one of a repository."""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
