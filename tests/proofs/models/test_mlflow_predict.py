"""`mlflow models predict` on raw files, as a user would call it: its answers are the study's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import oodbench
from oodbench.engine.asking import probabilities_of
from oodbench.record.delivery import deliver
from oodbench.record.outbox import Outbox
from oodbench.record.tracking import Record
from raw_tables import TREES, make_case


@pytest.mark.parametrize(
    ("kind", "method"),
    [*((kind, "erm") for kind in ("numbers", "categories", "regression", "three", "census")), ("categories", TREES)],
)
@pytest.mark.parametrize("type", ["csv", "json"])
def test_answers_to_raw_files(tmp_path: Path, kind: str, method: str, type: str) -> None:
    case = make_case(kind, tmp_path, method)
    record = Record(None, tmp_path / "record")
    deliver(record, Outbox(tmp_path / "record").put(case.outcome, "", fresh=True))
    (concluded,) = record.records_of([case.study])
    folder = oodbench.export(concluded.run_id, tmp_path / "taken", directory=tmp_path / "record")
    (rows,) = case.raw("test", 0).values()
    if type == "csv":
        rows.to_csv(tmp_path / "rows.csv", index=False)
    else:
        (tmp_path / "rows.json").write_text('{"dataframe_split": ' + rows.to_json(orient="split") + "}")
    command = ["-m", "mlflow", "models", "predict", "-m", str(folder), "-i", str(tmp_path / f"rows.{type}"), "-t", type]
    command += ["--env-manager", "local", "-o", str(tmp_path / "out.json")]
    subprocess.run([sys.executable, *command], check=True, timeout=300, cwd=tmp_path, env={**os.environ})
    said = pd.DataFrame(json.loads((tmp_path / "out.json").read_text())["predictions"])
    answers = []
    for seed in case.study.seeds:
        encoder, model = case.study.data.encoders[seed], case.outcome.models[seed]
        (environment,) = case.study.dataset.test(seed)
        assert encoder is not None
        if encoder.classes:
            answers.append(probabilities_of(model, environment.x, len(encoder.classes)))
        else:
            answers.append(encoder.values(model.predict(environment.x)))
    expected = np.mean(answers, axis=0)
    if expected.ndim == 1:
        np.testing.assert_allclose(said["prediction"], expected, rtol=1e-6)
    else:
        np.testing.assert_allclose(said.iloc[:, 1:], expected, rtol=0, atol=1e-6)
