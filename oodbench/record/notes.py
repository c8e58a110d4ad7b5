"""What MLflow's pages say of a study in words, and the views they offer: descriptions, names, columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from oodbench.board.metrics import SUMMARY, higher_is_better
from oodbench.plugin.method import LossMethod
from oodbench.record import schema
from oodbench.settings.space import Value
from oodbench.study.halving import describe_rungs
from oodbench.study.record import Kept, StudyRecord
from oodbench.study.selectors import describe_selector
from oodbench.texts import markdown, markdown_code

MOST_LISTED = 10  # models
RUN_ID = "RUN_ID"  # in these tags: the run's own id, known when it is delivered
METHODS_VIEW = "methods"
LOADER = "oodbench.record.model_files"
KEPT: Mapping[Kept, str] = {
    "loadable": "kept in models, for mlflow.pyfunc.load_model",
    "arrays": "kept as arrays, which only their plug-in can load",
    "nothing": "not kept, since they are not plain arrays",
}


def configuration_name(record: StudyRecord, index: int) -> str:
    chosen = record.choice is not None and index in record.choice.used
    return f"{record.method} {index}" + (" (chosen)" if chosen else "")


def hparams_text(hparams: Mapping[str, Value]) -> str:
    """Short enough for a column."""
    return ", ".join(f"{name}={_short(value)}" for name, value in hparams.items())


def study_note(record: StudyRecord, metrics: Mapping[str, float]) -> str:
    """What it is, what came out, how to do it again, how to load a model. Markdown."""
    budget, ledger = record.budget, record.ledger
    parts = [
        f"**{markdown(record.label)}** on **{markdown(record.dataset_id)}**: {ledger.trials} configurations × "
        f"{budget.seeds} seeds, chosen by `{record.selector}` ({describe_selector(record.selector)})."
    ]
    if ledger.rungs:
        rungs = describe_rungs((len(rung.configurations), rung.steps) for rung in ledger.rungs)
        parts.append(f"Searched by halving: {rungs}.")
    parts += [f"*{markdown(record.notice)}*"] if record.notice else []
    if record.choice_told:
        parts.append(f"*Not comparable with a choice on validation scores alone: {record.choice_told}.*")
    if record.choice:
        parts.append(f"Test error **{_with_spread(metrics, 'mean_error')}**, in the worst environment "
                     f"{_with_spread(metrics, 'max_error')} (means over seeds ± their spread).")  # fmt: skip
        chosen = hparams_text(record.chosen) or "defaults"
        numbers = ", ".join(map(str, sorted(record.choice.used)))
        what = (
            f"for each seed one of the configurations {numbers}"
            if record.choice.by_seed
            else f"configuration {numbers}"
        )
        parts.append(f"Chosen: {what}, {markdown_code(chosen)}.")
    if record.opening and record.opening.opened_all:
        parts.append("After the choice, all configurations were scored on test for diagnosis: rows `opened`.")
    if not record.choice:
        parts.append(f"**Failed**: {markdown(record.reason[:500])}")
    if ledger.failed_trainings:
        failed = f"{ledger.failed_trainings} of {ledger.trainings} trainings failed"
        parts.append(f"{failed}: `study.json` has the reasons, under `failures`.")
    command = record.provenance.command
    parts += [f"Do it again: {markdown_code(command)}"] if command else []  # a block of code would not be wrapped
    if record.choice and record.models == "loadable":
        load = f'mlflow.pyfunc.load_model("runs:/{RUN_ID}/{schema.MODEL_FOLDER}{budget.seed}")'
        parts.append(f"The chosen model of the first seed: `{load}`")
    elif record.choice:
        parts.append(f"The chosen models: {KEPT[record.models]}.")
    return "\n\n".join(parts)


def worded_tags(record: StudyRecord) -> dict[str, str]:
    """What was chosen, what is kept of the chosen models, and for MLflow's pages which files are tables and which
    folders models: those of the first seeds, since a tag has its limits."""
    if not record.choice:
        return {}
    tags = {
        schema.CHOSEN: hparams_text(record.chosen),
        schema.MODELS: KEPT[record.models],
        schema.TABLES: json.dumps([{"path": schema.ENVIRONMENTS, "type": "table"}]),
    }
    if record.models == "loadable":
        made = record.provenance.concluded.strftime("%Y-%m-%d %H:%M:%S.%f")
        flavors = {"python_function": {"loader_module": LOADER}}
        seeds = range(record.budget.seed, record.budget.seed + min(record.budget.seeds, MOST_LISTED))
        listed = [
            {"run_id": RUN_ID, "artifact_path": f"{schema.MODEL_FOLDER}{seed}", "utc_time_created": made}
            | {"flavors": flavors}
            for seed in seeds
        ]
        tags[schema.LOGGED_MODELS] = json.dumps(listed)
    return tags


def with_run_id(tags: Mapping[str, str], run_id: str) -> dict[str, str]:
    """Tags of a run that speak of its id, now that it has one."""
    speaking = (schema.NOTE, schema.LOGGED_MODELS)
    return {name: value.replace(RUN_ID, run_id) if name in speaking else value for name, value in tags.items()}


def experiment_tags(record: StudyRecord) -> dict[str, str]:
    """What the experiment of a dataset setting says: it is about all studies on it."""
    parts = [
        f"Studies on **{markdown(record.dataset_id)}**: a run per study, and in it a run per configuration that was "
        "tried."
    ]
    parts += [f"*{markdown(record.notice)}*"] if record.notice else []
    board = markdown_code(f"oodbench leaderboard {record.dataset}")
    parts.append(
        "*Views* has `methods` (test errors, choices, costs) and `configurations` (validation errors). Lower errors "
        f"are better. Use {board} to test whether a difference is significant."
    )
    return {
        schema.DATASET: record.dataset,
        schema.SETTINGS: json.dumps(record.settings),
        schema.EXPERIMENT_KIND: "custom_model_development",
        schema.NOTE: "\n\n".join(parts),
        **_views(record),
    }


def _views(record: StudyRecord) -> dict[str, str]:
    """Saved views, as the page itself would save them; a page that does not know them shows its usual table."""
    summary = SUMMARY[record.task]
    of_test = [schema.TEST + name for name in summary]
    shown = (*of_test, schema.BEST_SCORE, schema.FAILED_TRAININGS, f"{schema.USED}seconds")
    methods = {
        "searchFilter": f"tags.`{schema.KIND}` = '{schema.STUDY}'",
        "orderByKey": f"metrics.`{of_test[0]}`",
        "orderByAsc": not higher_is_better(summary[0]),
        "selectedColumns": [
            *(f"metrics.`{name}`" for name in shown),
            *(f"params.`{name}`" for name in ("trials", schema.SEEDS)),
            *(f"tags.`{name}`" for name in (schema.CHOSEN, schema.INFORMATION)),
        ],
    }
    of_configurations = (schema.WORST_ERROR, schema.MEAN_ERROR, schema.IS_CHOSEN, schema.FAILED_TRAININGS)
    configurations = {
        "searchFilter": f"tags.`{schema.KIND}` = '{schema.CONFIGURATION}'",
        "orderByKey": f"metrics.`{schema.WORST_ERROR}`",
        "orderByAsc": True,
        "selectedColumns": [
            *(f"metrics.`{name}`" for name in of_configurations),
            *(f"params.`{name}`" for name in LossMethod.common),
        ],
    }
    views = {METHODS_VIEW: methods, "configurations": configurations}
    return {f"{schema.VIEW}{name}": _saved(name, state) for name, state in views.items()}


def _saved(name: str, state: Mapping[str, Any]) -> str:
    return json.dumps({"name": name, "createdAt": 0, "updatedAt": 0, "state": json.dumps(state)})


def _with_spread(metrics: Mapping[str, float], name: str) -> str:
    value, spread = metrics.get(schema.TEST + name), metrics.get(schema.SPREAD + name)
    if value is None:
        return "not finite"
    return f"{value:.4g}" + ("" if spread is None else f" ± {spread:.2g}")


def _short(value: Value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
