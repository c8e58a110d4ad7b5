"""What the record gives to those who use MLflow itself: models that load, datasets, names, curves, descriptions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import oodbench
from oodbench import Method, TrainingRows

SETTINGS: dict[str, dict[str, Any]] = {
    "selection_bias": {"majority": 200, "minority": 40, "test_rows": 50},
    "spurious_correlation": {"group_rows": 100, "test_rows": 80, "d": 2},
}
EXTRA_TREES = "sklearn:sklearn.ensemble.ExtraTreesRegressor"
ALONE = """import sys
import mlflow, pandas
mlflow.set_tracking_uri(sys.argv[1])
model = mlflow.pyfunc.load_model(sys.argv[2])
print(model.predict(pandas.read_csv(sys.stdin)).tolist())
assert not {"torch", "ray"} & set(sys.modules)
"""


class Mean(Method):
    """Its predictor is no plain arrays."""

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> Mean:
        self.mean = float(np.mean(train.y))
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), self.mean)


@pytest.fixture(scope="module")
def results(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, oodbench.Result]:
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    directory = tmp_path_factory.mktemp("mlflow")
    methods: dict[str, Any] = {
        "selection_bias": ["erm", "kerhrm", Mean, "hist_gb", EXTRA_TREES],
        "spurious_correlation": ["erm", "logistic", "hist_gb"],
    }
    more: dict[str, Any] = {"trials": 3, "seeds": 2, "recipe": {"steps": 200}, "directory": directory}
    return {name: oodbench.run(methods[name], name, settings=SETTINGS[name], **more) for name in SETTINGS}


def run_of(result: oodbench.Result, label: str) -> Any:
    (row,) = (row for row in result.leaderboard().rows if row.label.startswith(label))
    return result.record.client.get_run(row.run_id)


def load(result: oodbench.Result, label: str, seed: int) -> Any:
    from mlflow.pyfunc import load_model

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", result.record.uri)
        return load_model(f"runs:/{run_of(result, label).info.run_id}/models/seed-{seed}")


@pytest.mark.parametrize(
    ("dataset", "label"),
    [
        ("selection_bias", "erm"),
        ("selection_bias", "kerhrm"),
        ("selection_bias", "hist_gb"),
        ("selection_bias", EXTRA_TREES),
        ("spurious_correlation", "erm"),
        ("spurious_correlation", "logistic"),
        ("spurious_correlation", "hist_gb"),
    ],
)
def test_a_loaded_model_makes_the_recorded_errors(
    results: dict[str, oodbench.Result], dataset: str, label: str
) -> None:
    result = results[dataset]
    study = result.studies[0]
    recorded = result.results()
    recorded = recorded[recorded["method"].str.startswith(label) & recorded["chosen"] & (recorded["part"] == "test")]
    for seed in study.seeds:
        model = load(result, label, seed)
        for environment in study.dataset.test(seed):
            rows = pd.DataFrame(environment.x, columns=study.dataset.columns)
            predicted = model.predict(rows[rows.columns[::-1]])  # columns go by name
            wrong = np.square if study.dataset.task == "regression" else np.abs
            error = wrong(predicted - environment.y).mean()
            where = (recorded["seed"] == seed) & (recorded["environment"] == environment.name)
            assert error == pytest.approx(recorded[where]["error"].item(), rel=1e-6)
            np.testing.assert_array_equal(model.get_raw_model().predict(environment.x), predicted)


def test_a_classifier_gives_scores_if_asked_and_says_so(results: dict[str, oodbench.Result]) -> None:
    result = results["spurious_correlation"]
    model, environment = load(result, "erm", 0), result.studies[0].dataset.test(0)[0]
    rows = pd.DataFrame(environment.x, columns=result.studies[0].dataset.columns)
    scores = model.predict(rows, params={"scores": True})
    assert scores.shape == (len(rows), 1)  # fitted as -1 and +1
    np.testing.assert_array_equal(scores[:, 0] > 0, model.predict(rows) == 1)
    assert model.metadata.get_params_schema().params[0].name == "scores"
    assert model.metadata.get_output_schema().inputs[0].type.name == "long"


def test_wrong_columns_are_named(results: dict[str, oodbench.Result]) -> None:
    from mlflow.exceptions import MlflowException

    model = load(results["selection_bias"], "erm", 0)
    names = list(results["selection_bias"].studies[0].dataset.columns or ())
    with pytest.raises(MlflowException, match=r"Model is missing inputs \['S1'\].*extra inputs: \['S0'\]"):
        model.predict(pd.DataFrame(np.zeros((2, 10)), columns=["S0", *names[1:]]))


def test_a_model_loads_in_a_process_that_knows_nothing_else(results: dict[str, oodbench.Result]) -> None:
    result = results["selection_bias"]
    rows = pd.DataFrame(np.eye(10), columns=result.studies[0].dataset.columns)
    address = f"runs:/{run_of(result, 'erm').info.run_id}/models/seed-1"
    command = [sys.executable, "-c", ALONE, result.record.uri, address]
    done = subprocess.run(
        command, input=rows.to_csv(index=False), capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(done.stdout) == pytest.approx(load(result, "erm", 1).predict(rows).tolist())


def test_models_are_arrays_and_text_and_what_is_neither_is_not_kept(results: dict[str, oodbench.Result]) -> None:
    result = results["selection_bias"]
    kept = Path(result.record.client.download_artifacts(run_of(result, "erm").info.run_id, "models"))
    assert {path.name for path in kept.rglob("*") if path.is_file()} == {
        "MLmodel", "model.safetensors", "requirements.txt",
    }  # fmt: skip
    pins = (kept / "seed-0" / "requirements.txt").read_text().split()
    assert f"oodbench=={oodbench.__version__}" in pins
    assert all("==" in line for line in pins)
    listed = json.loads(run_of(result, "erm").data.tags["mlflow.log-model.history"])
    assert [one["artifact_path"] for one in listed] == ["models/seed-0", "models/seed-1"]
    assert {one["run_id"] for one in listed} == {run_of(result, "erm").info.run_id}
    foreign = run_of(result, "mean")
    assert "not kept" in foreign.data.tags["oodbench.models"]
    assert "models" not in {artifact.path for artifact in result.record.client.list_artifacts(foreign.info.run_id)}


def test_data_are_datasets_with_our_fingerprints_and_without_rows(results: dict[str, oodbench.Result]) -> None:
    result = results["selection_bias"]
    study = result.studies[0]
    for label in ("erm", "kerhrm", "mean"):
        run = run_of(result, label)
        found = {one.tags[0].value: one.dataset for one in run.inputs.dataset_inputs}
        assert set(found) == {"training", "validation", "test"}
        assert {one.name for one in found.values()} == {study.dataset_id}
        assert found["training"].digest == run.data.tags["oodbench.fingerprint"] == study.data.fingerprint
        assert found["test"].digest == run.data.tags["oodbench.test_fingerprint"]
        assert json.loads(found["training"].profile)["environments"] == {"r=1.9": 200, "r=-1.1": 40}
        assert json.loads(found["test"].profile)["num_rows"] == 6 * 50
        assert [one["name"] for one in json.loads(found["test"].schema)["mlflow_colspec"]] == [
            *(study.dataset.columns or ()), "y",
        ]  # fmt: skip
        text = json.dumps([one.to_dictionary() for one in found.values()])
        assert str(Path.home()) not in text
        assert str(result.record.directory) not in text
    runs = result.record.client.search_runs([run.info.experiment_id], "dataset.context = 'test'")
    assert len(runs) == len(result.studies)


def test_a_run_says_in_words_what_it_is_and_how_to_do_it_again(results: dict[str, oodbench.Result]) -> None:
    result = results["selection_bias"]
    run = run_of(result, "erm")
    note = run.data.tags["mlflow.note.content"]
    for text in (
        "erm",
        "3 configurations × 2 seeds",
        "Test error",
        "`learning_rate=",
        f"runs:/{run.info.run_id}/models",
    ):
        assert text in note
    assert run.data.tags["oodbench.command"] in note
    experiment = result.record.client.get_experiment(run.info.experiment_id)
    assert result.studies[0].dataset_id in experiment.tags["mlflow.note.content"]
    children = result.record.client.search_runs(
        [run.info.experiment_id], f"tags.`mlflow.parentRunId` = '{run.info.run_id}'", order_by=["start_time DESC"]
    )
    assert [one.info.run_name.removesuffix(" (chosen)") for one in children] == ["erm 0", "erm 1", "erm 2"]
    (chosen,) = (one for one in children if one.info.run_name.endswith(" (chosen)"))
    assert chosen.data.metrics["chosen"] == 1


def test_the_search_is_a_curve_and_environments_are_a_table(results: dict[str, oodbench.Result]) -> None:
    result = results["selection_bias"]
    run = run_of(result, "erm")
    curve = result.record.client.get_metric_history(run.info.run_id, "validation/best_score")
    assert [point.step for point in curve] == [0, 1, 2]
    values = [point.value for point in curve]
    assert values == sorted(values, reverse=True)
    assert values[-1] == run.data.metrics["validation/best_score"]
    table = json.loads(Path(result.record.client.download_artifacts(run.info.run_id, "environments.json")).read_text())
    errors = [row[table["columns"].index("error")] for row in table["data"]]
    assert len(errors) == 6
    assert np.mean(errors) == pytest.approx(run.data.metrics["test/mean_error"])
    absolute = [row[table["columns"].index("mae")] for row in table["data"]]
    assert np.mean(absolute) == pytest.approx(run.data.metrics["test_metrics/mean_mae"], rel=1e-4)
    assert max(absolute) <= run.data.metrics["test_metrics/worst_mae"] + 1e-6
    board = result.leaderboard().as_dict()
    assert {"error", "mae", "r2"} <= board["rows"][0]["results"][0].keys()


@pytest.mark.parametrize("dataset", SETTINGS)
def test_models_of_datasets_without_an_encoder_are_taken_away_with_plain_numbers(
    results: dict[str, oodbench.Result], tmp_path: Path, dataset: str
) -> None:
    result = results[dataset]
    study, run = result.studies[0], run_of(result, "erm").info.run_id
    environment = study.dataset.test(0)[0]
    rows = pd.DataFrame(environment.x, columns=study.dataset.columns)
    first, second = (load(result, "erm", seed).predict(rows) for seed in (0, 1))
    ways: list[tuple[str, dict[str, Any]]] = [("one", {"seed": 0}), ("all", {}), ("refitted", {"refit": True})]
    answers = {}
    for folder, options in ways:
        taken = oodbench.export(run, tmp_path / folder, directory=result.record.directory, **options)
        answers[folder] = oodbench.load_model(taken).predict(rows)["prediction"]
    if dataset == "selection_bias":
        np.testing.assert_allclose(answers["one"], first, rtol=1e-9)
        np.testing.assert_allclose(answers["all"], (first + second) / 2, rtol=1e-9)
        assert np.corrcoef(answers["refitted"], first)[0, 1] > 0.9
        assert not np.allclose(answers["refitted"], first)
    else:
        assert answers["one"].tolist() == first.astype(str).tolist()
        assert np.mean(answers["refitted"].astype(int) == first) > 0.8
    assert sum(map(len, study.dataset.all_train(0)[0])) > sum(map(len, study.data.train[0]))
