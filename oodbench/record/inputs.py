"""The data of a study as MLflow's datasets: name, digest, columns and sizes. No rows, and no paths of this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping

from oodbench.record.entry import DataInput
from oodbench.record.model_files import feature_columns
from oodbench.study.record import StudyRecord

TARGET = "y"


def data_inputs(record: StudyRecord) -> list[DataInput]:
    """Of training, validation and, once they were opened, the test environments.

    The digest of the training data is the study's fingerprint, which is of training and validation data together.
    """
    data = record.data
    inputs = [
        _input(record, "training", data.fingerprint, data.training_rows),
        _input(record, "validation", data.validation_fingerprint, data.validation_rows),
    ]
    if record.opening:
        inputs.append(_input(record, "test", record.opening.test_fingerprint, record.opening.rows))
    return inputs


def _input(record: StudyRecord, context: str, digest: str, rows: Mapping[str, int]) -> DataInput:
    profile = {"num_rows": sum(rows.values()), "num_seeds": record.budget.seeds, "environments": dict(rows)}
    columns = record.data.columns
    target = {"type": "long" if record.task == "classification" else "double", "name": TARGET, "required": True}
    return DataInput(
        name=record.dataset_id,
        digest=digest,
        context=context,
        schema=json.dumps({"mlflow_colspec": [*feature_columns(columns), target]}) if columns else "",
        profile=json.dumps(profile),
    )
