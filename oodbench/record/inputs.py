"""The data of a study as MLflow's datasets: name, digest, columns and sizes. No rows, and no paths of this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping

from oodbench.record.model_files import feature_columns
from oodbench.record.parcel import DataInput
from oodbench.study.outcome import Outcome

TARGET = "y"


def data_inputs(outcome: Outcome) -> list[DataInput]:
    """Of training, validation and, once they were opened, the test environments.

    The digest of the training data is the study's fingerprint, which is of training and validation data together.
    """
    study = outcome.study
    data, first = study.data, study.seeds[0]
    inputs = [
        _input(outcome, "training", data.fingerprint, {one.name: len(one) for one in data.train[first]}),
        _input(
            outcome, "validation", data.validation_fingerprint, {one.name: len(one) for one in data.validation[first]}
        ),
    ]
    if outcome.opening:
        rows = outcome.results
        test = rows[rows["chosen"] & (rows["part"] == "test") & (rows["seed"] == first)]
        sizes = {str(name): int(size) for name, size in zip(test["environment"], test["rows"], strict=True)}
        inputs.append(_input(outcome, "test", outcome.opening.test_fingerprint, sizes))
    return inputs


def _input(outcome: Outcome, context: str, digest: str, rows: Mapping[str, int]) -> DataInput:
    study = outcome.study
    profile = {"num_rows": sum(rows.values()), "num_seeds": len(study.seeds), "environments": rows}
    columns = study.dataset.columns
    target = {"type": "long" if study.dataset.task == "classification" else "double", "name": TARGET, "required": True}
    return DataInput(
        name=study.dataset_id,
        digest=digest,
        context=context,
        schema=json.dumps({"mlflow_colspec": [*feature_columns(columns), target]}) if columns else "",
        profile=json.dumps(profile),
    )
