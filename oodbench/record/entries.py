"""From a study's record and result rows to what MLflow shows of it. One way: nothing here is read back."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import TYPE_CHECKING

from oodbench.board.metrics import summarize, summarize_stability
from oodbench.plugin.registry import names
from oodbench.record import schema
from oodbench.record.entry import Entries, Entry
from oodbench.record.inputs import data_inputs
from oodbench.record.notes import configuration_name, experiment_tags, study_note, worded_tags
from oodbench.study.record import StudyRecord

if TYPE_CHECKING:
    import pandas as pd

OF_OTHER_PARTS = {
    "test/train_accuracy": schema.TRAIN_ACCURACY,
    "test_stability/validation_stability": schema.VALIDATION_STABILITY,
}


def entries_of(record: StudyRecord, results: pd.DataFrame, parcel_id: str) -> Entries:
    metrics = study_metrics(record, results)
    tags = schema.study_tags(record, parcel_id) | worded_tags(record)
    scores = configuration_metrics(record, results)
    return Entries(
        experiment_tags=experiment_tags(record),
        parent=Entry(
            record.label,
            record.status,
            metrics,
            schema.study_params(record),
            tags | {schema.NOTE: study_note(record, metrics)},
        ),
        children=[
            Entry(
                configuration_name(record, index),
                "FAILED" if values[schema.FAILED_TRAININGS] else "FINISHED",
                values,
                {name: str(value) for name, value in hparams.items()},
            )
            for index, (hparams, values) in enumerate(zip(record.configurations, scores, strict=True))
        ],
        series=search_series(record),
        inputs=data_inputs(record),
    )


def study_metrics(record: StudyRecord, results: pd.DataFrame) -> dict[str, float]:
    """In the order in which MLflow's page of a run lists them.

    The sections of its charts are sorted by name, and `test` is to be the first.
    """
    ledger = record.ledger
    metrics: dict[str, float] = {}
    spread: dict[str, float] = {}
    if record.choice:
        of_test = summarize(results, record.task).rename(columns=lambda name: schema.TEST + name)
        stability = summarize_stability(results).rename(columns=lambda name: schema.TEST_STABILITY + name)
        per_seed = of_test.join(stability).rename(columns=OF_OTHER_PARTS)
        metrics = {str(name): float(values.mean()) for name, values in per_seed.items()}
        spread = {schema.SPREAD + str(name).split("/")[-1]: float(per_seed[name].std(ddof=1)) for name in per_seed}
        metrics |= _installed_metrics(record, results)
    metrics |= {schema.FAILED_TRAININGS: float(ledger.failed_trainings)}
    used = {
        "trainings": ledger.trainings,
        "seconds": ledger.seconds,
        "gradient_steps": ledger.gradient_steps,
        "row_visits": ledger.row_visits,
    }
    metrics |= {schema.USED + name: value for name, value in used.items()}
    return {name: value for name, value in (metrics | spread).items() if math.isfinite(value)}


def _installed_metrics(record: StudyRecord, results: pd.DataFrame) -> dict[str, float]:
    """Mean and worst over test environments, means over seeds; none where a value is missing."""
    installed = set(names("metric"))  # a study may be delivered where a metric is not
    wanted = [f"{over}_{name}" for name in record.metrics if name in installed for over in ("mean", "worst")]
    per_seed = summarize(results, record.task, wanted)[wanted]
    return {schema.METRICS + name: float(per_seed[name].mean(skipna=False)) for name in wanted}


def search_series(record: StudyRecord) -> dict[str, list[tuple[int, float]]]:
    """The best score among the configurations up to each."""
    name = schema.BEST_ORACLE_SCORE if record.selector == "oracle" else schema.BEST_SCORE
    scores = sorted(record.choice.scores.items()) if record.choice else []
    best = itertools.accumulate((score for _, score in scores), min)
    return {name: [(index, value) for (index, _), value in zip(scores, best, strict=True)]}


def configuration_metrics(record: StudyRecord, results: pd.DataFrame) -> list[dict[str, float]]:
    """Of every configuration, in their order."""
    failed = Counter(failure.configuration for failure in record.failures)
    metrics: list[dict[str, float]] = [{} for _ in record.configurations]
    scores = results[results["part"] == "validation"]
    by_seed = scores.groupby(["configuration", "seed"])["error"].agg(["mean", "max"])
    for index, row in by_seed.groupby("configuration").mean().iterrows():
        # MLflow's plots begin with the first metric
        errors = {schema.WORST_ERROR: float(row["max"]), schema.MEAN_ERROR: float(row["mean"])}
        metrics[int(str(index))] |= errors
    for index, values in enumerate(metrics):
        values[schema.FAILED_TRAININGS] = float(failed[index])
        if record.choice:
            values[schema.IS_CHOSEN] = float(index in record.choice.used)
    return [{name: value for name, value in values.items() if math.isfinite(value)} for values in metrics]
