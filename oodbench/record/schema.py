"""The names under which MLflow shows a study: one table, written from the study's record and never parsed back.

Only the tags under "to find runs" are read, and three parameters are searched for. What a study came to is read from
its study.json.
"""

from __future__ import annotations

from collections.abc import Mapping

from oodbench.settings.space import fixed_text
from oodbench.study.record import StudyRecord

# tags to find runs
KIND = "oodbench.kind"
STUDY, CONFIGURATION = "study", "configuration"  # the kinds
STUDY_ID = "oodbench.study"
PARCEL_ID = "oodbench.parcel"
LABEL = "oodbench.label"
REPEAT_OF = "oodbench.repeat_of"
NUMBER = "oodbench.configuration"  # of a configuration's run
DATASET = "oodbench.dataset"
PARENT = "mlflow.parentRunId"

# parameters to find studies with a budget or a selector
TRIALS_GRANTED = "trials_granted"
SEEDS = "seeds"
SELECTOR = "selector"

# other tags
CHOSEN = "oodbench.chosen"
INFORMATION = "oodbench.information"
MODELS = "oodbench.models"
SETTINGS = "oodbench.settings"  # of an experiment
NOTE = "mlflow.note.content"
TABLES = "mlflow.loggedArtifacts"
LOGGED_MODELS = "mlflow.log-model.history"
EXPERIMENT_KIND = "mlflow.experimentKind"
VIEW = "mlflow.sharedViewState."
SOURCE_NAME = "mlflow.source.name"
SOURCE_TYPE = "mlflow.source.type"
DATA_CONTEXT = "mlflow.data.context"

# metrics; what stands before a slash is a section of MLflow's charts
TEST = "test/"
METRICS = "test_metrics/"
SPREAD = "test_spread/"
TEST_STABILITY = "test_stability/"
USED = "used/"
TRAIN_ACCURACY = "train_accuracy"
VALIDATION_STABILITY = "validation/stability"
FAILED_TRAININGS = "failed_trainings"
BEST_ORACLE_SCORE = "oracle/best_score"
BEST_SCORE = "validation/best_score"
WORST_ERROR = "validation_worst_error"
MEAN_ERROR = "validation_mean_error"
IS_CHOSEN = "chosen"

# artifacts, beside study.json and results.parquet
ENVIRONMENTS = "environments.json"
MODEL_FOLDER = "models/seed-"

MOST_TEXT = 4000  # letters of a tag


def study_params(record: StudyRecord) -> dict[str, str]:
    budget, ledger = record.budget, record.ledger
    params: dict[str, object] = {
        "method": record.method,
        "dataset": record.dataset,
        **_below("dataset.", record.settings),
        **_below("fixed.", {name: fixed_text(value) for name, value in record.fixed.items()}),
        "model": record.model,
        **_below("model.", record.model_settings),
        **_below("recipe.", record.recipe),
        TRIALS_GRANTED: budget.trials,
        "trials": ledger.trials,
        SEEDS: budget.seeds,
        "seed": budget.seed,
        "search": budget.search,
        "scheduler": budget.scheduler,
        "budget_seconds": budget.seconds,
        "complete_trials": ledger.complete_trials,
        "repeat": budget.repeat,
        SELECTOR: record.selector,
        "choose": record.choose,
        "device": ledger.device,
    }
    if record.choice:
        params |= {"chosen": ", ".join(map(str, sorted(record.choice.used))), **_below("chosen.", record.chosen)}
    if record.stability:
        params |= {"stability.alpha0": record.stability.alpha0}
    return {name: str(value) for name, value in params.items()}


def study_tags(record: StudyRecord, parcel_id: str) -> dict[str, str]:
    """All but those that notes.py words."""
    made = record.provenance
    tags = {
        KIND: STUDY,
        STUDY_ID: record.study_id,
        PARCEL_ID: parcel_id,
        "oodbench.method": record.method,
        DATASET: record.dataset,
        LABEL: record.label,
        "oodbench.task": record.task,
        "oodbench.search": record.search_id,
        "oodbench.fingerprint": record.data.fingerprint,
        INFORMATION: record.told,
        "oodbench.choice_told": record.choice_told,
        "oodbench.notice": record.notice,
        "oodbench.command": made.command,
        "oodbench.git_commit": made.git_commit,
        SOURCE_NAME: "oodbench run",
        SOURCE_TYPE: "LOCAL",
        "oodbench.python": made.python,
        **{f"oodbench.version.{package}": version for package, version in made.versions.items()},
    }
    if record.opening:
        tags["oodbench.test_opened_at"] = record.opening.opened_at.isoformat()
        tags["oodbench.test_fingerprint"] = record.opening.test_fingerprint
        tags["oodbench.test_opened_before_selection"] = str(record.opening.before_selection).lower()
    if record.repeat_of:
        tags[REPEAT_OF] = record.repeat_of
    if record.reason:
        tags["oodbench.error"] = record.reason[:MOST_TEXT]
    return tags


def _below(prefix: str, values: Mapping[str, object]) -> dict[str, object]:
    return {prefix + name: value for name, value in values.items()}
