"""The files of a concluded study: its record and result rows, a table for MLflow's pages, and the chosen models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.record.model_files import write_model
from oodbench.record.schema import ENVIRONMENTS, MODEL_FOLDER
from oodbench.study.document import write_document
from oodbench.study.models import storable
from oodbench.study.outcome import Outcome
from oodbench.study.record import RESULTS_FILE, STUDY_FILE

if TYPE_CHECKING:
    import pandas as pd


def write_artifacts(outcome: Outcome, folder: Path) -> None:
    record = outcome.record
    (folder / STUDY_FILE).write_bytes(write_document(record))
    outcome.results.to_parquet(folder / RESULTS_FILE, index=False)
    if record.choice:
        (folder / ENVIRONMENTS).write_text(_environment_table(outcome.results, record.metrics), encoding="utf-8")
    data = record.data
    for seed, model in storable(outcome.models).items():
        own, encoder = folder / f"{MODEL_FOLDER}{seed}", outcome.encoders.get(seed)
        write_model(model, own, record.task, data.columns, data.features, encoder)


def _environment_table(results: pd.DataFrame, metrics: Sequence[str]) -> str:
    """Scores of the chosen configuration on every test environment, means over seeds, as MLflow shows tables."""
    test = results[results["chosen"] & (results["part"] == "test")].dropna(axis="columns", how="all")
    scores = [name for name in ("error", "accuracy", "f1", *metrics, "stability", "ods") if name in test]
    table = test.groupby("environment", sort=False)[[*scores, "rows"]].mean().reset_index()
    return str(table.to_json(orient="split", index=False, double_precision=6))
