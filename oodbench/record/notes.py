"""What MLflow's pages say of a study in words, and the views they offer: descriptions, names, columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from oodbench.board.metrics import HIGHER_IS_BETTER, SUMMARY
from oodbench.plugin.method import LossMethod
from oodbench.record.model_files import is_loadable
from oodbench.settings.fields import as_dict
from oodbench.settings.space import Value
from oodbench.study.outcome import Outcome
from oodbench.study.reproduce import command_for
from oodbench.study.selectors import SELECTORS
from oodbench.study.study import Study

NOTE = "mlflow.note.content"
MODELS = "mlflow.log-model.history"
MOST_LISTED = 10  # models
RUN_ID = "RUN_ID"  # in these tags: the run's own id, known when it is delivered
METHODS_VIEW = "methods"
VIEW = "mlflow.sharedViewState."
LOADED = "kept in models, for mlflow.pyfunc.load_model"


def configuration_name(study: Study, index: int, chosen: bool) -> str:
    return f"{study.method_name} {index}" + (" (chosen)" if chosen else "")


def hparams_text(hparams: Mapping[str, Value]) -> str:
    """Short enough for a column."""
    return ", ".join(f"{name}={_short(value)}" for name, value in hparams.items())


def study_note(outcome: Outcome, metrics: Mapping[str, float]) -> str:
    """What it is, what came out, how to do it again, how to load a model. Markdown."""
    study, budget = outcome.study, outcome.study.budget
    parts = [
        f"**{study.label}** on **{study.dataset_id}**: {len(study.configurations)} configurations × "
        f"{budget.seeds} seeds, chosen by `{study.selector}` ({SELECTORS[study.selector]})."
    ]
    parts += [f"*{study.dataset.notice}*"] if study.dataset.notice else []
    if outcome.selection:
        chosen = study.configurations[outcome.selection.configuration]
        parts.append(f"Test error **{_with_spread(metrics, 'mean_error')}**, in the worst environment "
                     f"{_with_spread(metrics, 'max_error')} (means over seeds ± their spread).")  # fmt: skip
        parts.append(
            f"Chosen: configuration {outcome.selection.configuration}, `{hparams_text(chosen) or 'defaults'}`."
        )
    else:
        parts.append(f"**Failed**: {(outcome.error or '')[:500]}")
    failed = outcome.ledger["failed_trainings"]
    parts += [f"{failed} of {outcome.ledger['trainings']} trainings failed: see `failures.json`."] if failed else []
    command = command_for(study)
    parts += [f"Do it again: `{command}`"] if command else []  # a block of code would not be wrapped
    if outcome.models and _kept(outcome) == LOADED:
        load = f'mlflow.pyfunc.load_model("runs:/{RUN_ID}/models/seed-{study.seeds[0]}")'
        parts.append(f"The chosen model of the first seed: `{load}`")
    elif outcome.models:
        parts.append(f"The chosen models: {_kept(outcome)}.")
    return "\n\n".join(parts)


def model_tags(outcome: Outcome) -> dict[str, str]:
    """What is kept of the chosen models, and for MLflow's pages which folders are models: of the first seeds, since a
    tag has its limits."""
    tags = {"oodbench.models": _kept(outcome)}
    if tags["oodbench.models"] == LOADED:
        made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        flavors = {"python_function": {"loader_module": is_loadable.__module__}}
        folders = [f"models/seed-{seed}" for seed in outcome.study.seeds[:MOST_LISTED]]
        listed = [
            {"run_id": RUN_ID, "artifact_path": path, "utc_time_created": made, "flavors": flavors} for path in folders
        ]
        tags[MODELS] = json.dumps(listed)
    return tags


def with_run_id(tags: Mapping[str, str], run_id: str) -> dict[str, str]:
    """Tags of a run that speak of its id, now that it has one."""
    return {key: value.replace(RUN_ID, run_id) if key in (NOTE, MODELS) else value for key, value in tags.items()}


def _kept(outcome: Outcome) -> str:
    kept = outcome.kept_models
    if not kept or len(kept) < len(outcome.models):
        return "not kept, since they are not plain arrays"
    return LOADED if all(map(is_loadable, kept.values())) else "kept as arrays, which only their plug-in can load"


def experiment_tags(study: Study) -> dict[str, str]:
    """What the experiment of a dataset setting says: it is about all studies on it."""
    dataset = study.dataset
    parts = [f"Studies on **{study.dataset_id}**: a run per study, and in it a run per configuration that was tried."]
    parts += [f"*{dataset.notice}*"] if dataset.notice else []
    parts.append(
        "Under *Views*: `methods` (test errors, choices, costs) and `configurations` (validation errors). Smaller "
        f"errors are better. Whether a difference is more than chance says `oodbench leaderboard {study.dataset_name}`."
    )
    return {
        "oodbench.dataset": study.dataset_name,
        "oodbench.settings": json.dumps(as_dict(dataset)),
        "mlflow.experimentKind": "custom_model_development",
        NOTE: "\n\n".join(parts),
        **_views(study),
    }


def _views(study: Study) -> dict[str, str]:
    """Saved views, as the page itself would save them; a page that does not know them shows its usual table."""
    summary = SUMMARY[study.dataset.task]
    of_test = [f"test/{name}" for name in summary]
    methods = {
        "searchFilter": "tags.`oodbench.kind` = 'study'",
        "orderByKey": f"metrics.`{of_test[0]}`",
        "orderByAsc": summary[0] not in HIGHER_IS_BETTER,
        "selectedColumns": [
            *(f"metrics.`{name}`" for name in (*of_test, "validation/best_score", "failed_trainings", "used/seconds")),
            *(f"params.`{name}`" for name in ("trials", "seeds")),
            *(f"tags.`oodbench.{name}`" for name in ("chosen", "information")),
        ],
    }
    configurations = {
        "searchFilter": "tags.`oodbench.kind` = 'configuration'",
        "orderByKey": "metrics.`validation_worst_error`",
        "orderByAsc": True,
        "selectedColumns": [
            *(
                f"metrics.`{n}`"
                for n in ("validation_worst_error", "validation_mean_error", "chosen", "failed_trainings")
            ),
            *(f"params.`{name}`" for name in LossMethod.common),
        ],
    }
    views = {METHODS_VIEW: methods, "configurations": configurations}
    return {f"{VIEW}{name}": _saved(name, state) for name, state in views.items()}


def _saved(name: str, state: Mapping[str, Any]) -> str:
    return json.dumps({"name": name, "createdAt": 0, "updatedAt": 0, "state": json.dumps(state)})


def _with_spread(metrics: Mapping[str, float], name: str) -> str:
    spread = metrics.get(f"test_spread/{name}")
    return f"{metrics[f'test/{name}']:.4g}" + ("" if spread is None else f" ± {spread:.2g}")


def _short(value: Value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
