"""The whole way on a real Ray cluster with a real MLflow store, through the Python interface."""

from __future__ import annotations

import html
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open

import oodbench
from oodbench import Dataset, Environment, Hparams, LossMethod, Method, Rows, TrainingRows
from oodbench.engine.data import Task
from oodbench.errors import MissingInformation, Notice, UserError, WorkError
from oodbench.record.tracking import Record
from parcels import put

TINY = {"majority": 200, "minority": 40, "test_rows": 50}
QUICK = {"trials": 3, "seeds": 2}


@pytest.fixture(autouse=True)
def _workers_get_this_module(ray_address: str) -> None:
    """Workers cannot import a test module: its classes travel by value."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def run(methods: Any, dataset: Any = "selection_bias", **more: Any) -> oodbench.Result:
    settings = TINY if dataset == "selection_bias" else {}
    return oodbench.run(methods, dataset, **{"settings": settings, **QUICK, **more})


@pytest.fixture(scope="module")
def finished(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> oodbench.Result:
    return run(["erm", "fdro"], directory=tmp_path_factory.mktemp("finished"))


def test_the_leaderboard_has_a_row_per_method(finished: oodbench.Result) -> None:
    board = finished.leaderboard()
    assert sorted(row.label for row in board.rows) == ["erm", "fdro"]
    for row in board.rows:
        assert (row.trials, row.seeds, row.failed_trainings) == (3, 2, 0)
        assert all(cell.value is not None and cell.spread is not None for cell in row.cells.values())
    assert {row.label: row.information for row in board.rows} == {"erm": "", "fdro": "alpha0=0.1"}


def test_results_have_a_row_per_configuration_seed_and_environment(finished: oodbench.Result) -> None:
    results = finished.results()
    erm = results[results["method"] == "erm"]
    assert len(erm[erm["part"] == "validation"]) == 3 * 2 * 2
    assert len(erm[erm["part"] == "test"]) == 1 * 2 * 6
    assert erm[erm["part"] == "test"]["configuration"].nunique() == 1
    assert erm[erm["chosen"]]["configuration"].unique() == erm[erm["part"] == "test"]["configuration"].unique()


def test_the_chosen_configuration_is_the_best_on_validation_alone(finished: oodbench.Result) -> None:
    results = finished.results()
    for _, study in results.groupby("method"):
        validation = study[study["part"] == "validation"]
        worst = validation.groupby(["configuration", "seed"])["error"].max().groupby("configuration").mean()
        assert study[study["chosen"]]["configuration"].iloc[0] == worst.idxmin()


def test_the_record_has_parents_children_and_artifacts(finished: oodbench.Result) -> None:
    client = finished.record.client
    (experiment,) = client.search_experiments(filter_string="tags.`oodbench.dataset` = 'selection_bias'")
    assert experiment.name == "selection_bias majority=200 minority=40 test_rows=50"
    runs = client.search_runs([experiment.experiment_id])
    parents = [one for one in runs if one.data.tags["oodbench.kind"] == "study"]
    children = [one for one in runs if one.data.tags["oodbench.kind"] == "configuration"]
    assert (len(parents), len(children)) == (2, 6)
    assert {one.info.status for one in runs} == {"FINISHED"}
    for parent in parents:
        mine = [one for one in children if one.data.tags["mlflow.parentRunId"] == parent.info.run_id]
        assert len(mine) == 3
        assert sum(one.data.metrics["chosen"] for one in mine) == 1
        assert all(
            one.data.metrics["validation_worst_error"] >= one.data.metrics["validation_mean_error"] for one in mine
        )
        tags, params = parent.data.tags, parent.data.params
        assert tags["oodbench.test_opened_before_selection"] == "false"
        assert tags["oodbench.fingerprint"] == finished.studies[0].data.fingerprint
        assert {"oodbench.version.torch", "oodbench.version.ray", "oodbench.test_opened_at"} <= set(tags)
        assert {"chosen.learning_rate", "recipe.steps", "model", "trials", "dataset.majority"} <= set(params)
        assert parent.data.metrics["used/gradient_steps"] == 3 * 2 * 2000
        assert parent.data.metrics["used/row_visits"] == 3 * 2 * 2000 * 240
        names = {artifact.path for artifact in client.list_artifacts(parent.info.run_id)}
        assert names == {
            "study.json", "results.parquet", "environments.json", "models",
        }  # fmt: skip
        models = [artifact.path for artifact in client.list_artifacts(parent.info.run_id, "models")]
        assert models == ["models/seed-0", "models/seed-1"]
        arrays = client.download_artifacts(parent.info.run_id, f"{models[0]}/model.safetensors")
        with safe_open(arrays, "numpy") as stored:
            assert stored.get_tensor("parameters").shape == (10,)
            described = stored.metadata()
        assert (described["family"], described["model.intercept"], described["outputs"]) == ("linear", "false", "1")


def test_the_stability_of_the_chosen_models_is_recorded(finished: oodbench.Result) -> None:
    results = finished.results()
    chosen, others = results[results["chosen"]], results[~results["chosen"]]
    measured = chosen[chosen["part"] != "train"]
    assert set(measured["part"]) == {"pooled", "validation", "test"}
    assert (measured["stability"] > 0).all()
    assert chosen["ods"].notna().equals(chosen["part"] == "test")
    assert others[["stability", "ods"]].isna().all(axis=None)
    test = chosen[(chosen["method"] == "erm") & (chosen["part"] == "test")].groupby("seed")
    (erm,) = (one for one in finished.record.studies(finished.studies[0].dataset_id) if one.label == "erm")
    run = finished.record.client.get_run(erm.run_id)
    assert run.data.params["stability.alpha0"] == "0.1"
    assert run.data.metrics["test_stability/test_stability"] == pytest.approx(test["stability"].mean().mean())
    assert run.data.metrics["test_stability/max_test_stability"] == pytest.approx(test["stability"].max().mean())
    assert run.data.metrics["test_stability/ods"] == pytest.approx(test["ods"].mean().mean())
    assert run.data.metrics["validation/stability"] > 0
    stability = erm.record.stability
    assert stability is not None
    assert len(stability.assessments) == 2 * (1 + 2 + 6)
    worst = stability.assessments[0].worst
    assert worst is not None
    assert {column.column for column in worst.columns} >= {"S1", "V5"}


def test_stability_is_on_the_leaderboard_if_asked_for(finished: oodbench.Result) -> None:
    board = oodbench.leaderboard("selection_bias", settings=TINY, stability=True, directory=finished.record.directory)
    for row in board.rows:
        assert all(row.cells[name].value is not None for name in ("validation_stability", "test_stability", "ods"))
    assert "ods" not in finished.leaderboard().rows[0].cells


def test_the_page_has_what_the_record_has_and_is_the_same_from_the_command_line(
    finished: oodbench.Result, cli: Callable[..., Any], tmp_path: Path
) -> None:
    page = finished.write_page(tmp_path / "page").read_text()
    for study in finished.leaderboard().studies:
        record, command = study.record, study.record.provenance.command
        assert record.ledger.trainings == 6
        assert record.ledger.gradient_steps > 0 < record.ledger.seconds
        assert {"learning_rate", "weight_decay"} <= set(record.chosen)
        assert f"--method {record.label} --dataset selection_bias" in command
        for text in (command, study.run_id, record.data.fingerprint, record.test_fingerprint, *record.chosen):
            assert text, record
            assert html.escape(text) in page
    settings = [text for name, value in TINY.items() for text in ("--set", f"{name}={value}")]
    where = ["--directory", str(finished.record.directory), "--format", "html", "-o", str(tmp_path / "again")]
    done = cli("leaderboard", "selection_bias", *settings, *where)
    assert (done.code, done.out) == (0, f"wrote {tmp_path / 'again' / 'index.html'}\n"), done.err
    assert (tmp_path / "again" / "index.html").read_text() == page


def test_the_same_command_gives_the_same_numbers_and_another_method_changes_none(
    finished: oodbench.Result, tmp_path: Path
) -> None:
    alone = run("erm", directory=tmp_path)
    both = finished.results()
    expected = both[both["method"] == "erm"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone.results(), expected, check_exact=True)


def test_more_trials_extend_the_search_and_change_nothing(finished: oodbench.Result, tmp_path: Path) -> None:
    longer = run("erm", directory=tmp_path, trials=5).studies[0].configurations
    assert longer[:3] == finished.studies[0].configurations


def test_a_finished_study_is_not_run_again(finished: oodbench.Result) -> None:
    client = finished.record.client
    count = len(client.search_runs([one.experiment_id for one in client.search_experiments()]))
    again = run(["erm", "fdro"], directory=finished.record.directory)
    assert len(client.search_runs([one.experiment_id for one in client.search_experiments()])) == count
    assert again.leaderboard() == finished.leaderboard()


def test_a_damaged_parcel_and_a_damaged_study_do_not_stop_a_run(finished: oodbench.Result) -> None:
    directory = finished.record.directory
    (bad,) = put(directory, "irm")
    (bad.folder / "parcel.json").write_text('{"schema": 1, "mood": "good"')
    run_id = next(row.run_id for row in finished.leaderboard().rows if row.label == "erm")
    file = directory / "artifacts" / run_id / "artifacts" / "study.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    try:
        with pytest.warns(Notice) as warned:
            rows = {row.label: row for row in run(["erm", "fdro"], directory=directory).leaderboard().rows}
    finally:
        file.write_bytes(whole)
    told = [str(each.message) for each in warned if issubclass(each.category, Notice)]
    assert [text.partition(": ")[0] for text in told] == [f"parcel {bad.id} is left out", "left out"]
    assert rows["fdro"].cells["mean_error"].value is not None
    assert rows["erm"].failure.startswith(f"unreadable: run {run_id} (erm) is damaged: study.json: it is not JSON")
    assert (directory / "damaged" / bad.id / "reason.txt").read_text() == "parcel.json: it is not JSON\n"


def test_the_newest_study_of_a_label_counts_and_a_fresh_run_gives_the_same(tmp_path: Path) -> None:
    first = run("erm", directory=tmp_path)
    again = run("erm", directory=tmp_path, fresh=True)
    dataset_id = first.studies[0].dataset_id
    assert len(again.record.studies(dataset_id)) == 1
    pd.testing.assert_frame_equal(first.results(), again.results(), check_exact=True)
    client = again.record.client
    (experiment,) = client.search_experiments(filter_string=f"name = '{dataset_id}'")
    assert len(client.search_runs([experiment.experiment_id], "tags.`oodbench.kind` = 'study'")) == 2


def test_passwords_are_not_shown(tmp_path: Path) -> None:
    record = Record(f"sqlite:///{tmp_path}/a.db", tmp_path)
    record.uri = "postgresql://team:secret@db.example/runs"
    assert record.address == "postgresql://***@db.example/runs"


def test_the_oracle_is_labelled_and_opens_the_test_data_before_selection(tmp_path: Path) -> None:
    result = run("erm", directory=tmp_path, selector="oracle")
    assert result.leaderboard().rows[0].label == "erm (oracle: chosen on test data)"
    results = result.results()
    tested = results[results["part"] == "test"].groupby("configuration")["error"].mean()
    assert len(tested) == 3
    assert results[results["chosen"]]["configuration"].iloc[0] == tested.idxmin()
    (parent,) = result.record.studies(result.studies[0].dataset_id)
    tags = result.record.client.get_run(parent.run_id).data.tags
    assert tags["oodbench.test_opened_before_selection"] == "true"


def test_classification_with_overrides(tmp_path: Path) -> None:
    result = run(
        "fdro", "spurious_correlation", directory=tmp_path, model="mlp", model_settings={"width": "6,4"},
        fix={"divergence": "chi_square"}, settings={"group_rows": 100, "test_rows": 80, "d": 2},
    )  # fmt: skip
    (row,) = result.leaderboard().rows
    assert row.label == "fdro (divergence=chi_square, mlp width=6,4)"
    assert set(row.cells) == {"mean_error", "std_error", "max_error", "mean_accuracy", "mean_f1", "worst_f1"}
    assert row.cells["std_error"].value is None  # one test environment has no spread over environments
    accuracy = row.cells["mean_accuracy"].value
    assert accuracy is not None
    assert row.cells["mean_error"].value == pytest.approx(1 - accuracy)


class DivergesWhenFast(LossMethod):
    """Not a number from a learning rate on: some configurations fail."""

    def loss(self, rows: Rows, hp: Hparams) -> Any:
        return rows.losses.mean(-1) / (hp.learning_rate < 0.02)  # 1 / 0 = inf, and then nan


class AlwaysDiverges(LossMethod):
    """Never a number."""

    def loss(self, rows: Rows, hp: Hparams) -> Any:
        return rows.losses.mean(-1) * float("nan")


def test_trainings_that_diverge_are_failures_and_the_rest_goes_on(tmp_path: Path) -> None:
    result = run([DivergesWhenFast, AlwaysDiverges, "erm"], directory=tmp_path, trials=6)
    rows = {row.label: row for row in result.leaderboard().rows}
    some = rows["diverges_when_fast"]
    assert 0 < some.failed_trainings < 12
    assert some.cells["mean_error"].value is not None
    assert rows["always_diverges"].cells["mean_error"].value is None
    assert rows["always_diverges"].failed_trainings == 12
    assert "diverged" in rows["always_diverges"].failure
    assert rows["erm"].failed_trainings == 0
    (name,) = result.failures
    assert name.startswith("always_diverges on selection_bias")


class KillsItsWorker(Method):
    """As the out-of-memory killer would."""

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_fails_its_pack_and_the_rest_goes_on(tmp_path: Path) -> None:
    result = run([KillsItsWorker, "erm"], directory=tmp_path, seeds=1)
    rows = {row.label: row for row in result.leaderboard().rows}
    assert "the worker failed 3 times" in rows["kills_its_worker"].failure
    assert rows["erm"].cells["mean_error"].value is not None


class NearestMean(Method):
    """A foreign estimator: fit and predict, nothing else."""

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> NearestMean:
        self.mean = float(np.mean(train.y))
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), self.mean)


class SaysNothingUsable(Method):
    """A classifier whose outputs are not numbers."""

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> SaysNothingUsable:
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.zeros(len(x), int)

    def outputs(self, x: np.ndarray) -> np.ndarray:
        return np.full((len(x), 2), np.nan)


def test_a_model_without_a_stability_keeps_its_scores_and_says_why(tmp_path: Path) -> None:
    settings = {"group_rows": 50, "test_rows": 40, "d": 2}
    result = run(SaysNothingUsable, "spurious_correlation", directory=tmp_path, settings=settings)
    (row,) = result.leaderboard().rows
    assert row.cells["mean_error"].value is not None
    stability = result.leaderboard().studies[0].record.stability
    assert stability is not None
    assert all("must be finite numbers" in assessment.failure for assessment in stability.assessments)


def test_anything_with_fit_and_predict_is_a_method(tmp_path: Path) -> None:
    result = run(NearestMean, directory=tmp_path)
    (row,) = result.leaderboard().rows
    assert (row.trials, row.seeds) == (1, 2)  # its search space is a single point
    assert row.cells["mean_error"].value is not None


@dataclass(frozen=True)
class OneGroup(Dataset):
    """No group labels."""

    task: ClassVar[Task] = "regression"

    def train(self, seed: int) -> Sequence[Environment]:
        rng = self.rng(seed, "train")
        return [Environment("all", rng.normal(size=(30, 2)), rng.normal(size=30))]

    validation = train

    def test(self, seed: int) -> Sequence[Environment]:
        return self.train(seed + 1000)


class WantsGroups(LossMethod):
    needs = {"environments"}

    def loss(self, rows: Rows, hp: Hparams) -> Any:
        return rows.risk(rows.environments).amax(-1)


def test_a_method_that_needs_environments_on_a_dataset_without(tmp_path: Path) -> None:
    with pytest.raises(MissingInformation, match="needs environment labels, and 'one_group' has only one"):
        run(WantsGroups, OneGroup, directory=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_method_that_needs_environments_gets_them_and_it_is_recorded(tmp_path: Path) -> None:
    result = run(WantsGroups, directory=tmp_path, no_stability=True)
    (row,) = result.leaderboard().rows
    assert row.information == "environments"
    assert result.results()["stability"].isna().all()
    board = oodbench.leaderboard("selection_bias", settings=TINY, stability=True, directory=tmp_path)
    assert board.rows[0].cells["validation_stability"].value is None
    assert board.rows[0].missing == {"stability": "the study was run with --no-stability; run it again with --fresh"}
    assert row.cells["mean_error"].value is not None


@dataclass(frozen=True)
class WrongClasses(OneGroup):
    """Says two classes, has three."""

    task = "classification"

    def train(self, seed: int) -> Sequence[Environment]:
        return [Environment("all", np.zeros((3, 2)), np.array([0, 1, 2]))]

    validation = train


def test_data_that_does_not_fit_the_task_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match=r"training all has classes \[0, 1, 2\], not 0 to 1"):
        run("erm", WrongClasses, directory=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_environment_labels_are_withheld_from_methods_that_do_not_need_them(finished: oodbench.Result) -> None:
    assert all(study.search_data(0).train.environment is None for study in finished.studies)


def test_the_leaderboard_comes_from_the_record(finished: oodbench.Result) -> None:
    board = oodbench.leaderboard("selection_bias", settings=TINY, directory=finished.record.directory)
    assert {row.label: row.cells for row in board.rows} == {row.label: row.cells for row in finished.leaderboard().rows}
    with pytest.raises(
        UserError, match="no studies on 'selection_bias' in .*\nThere are studies on: selection_bias majority"
    ):
        oodbench.leaderboard("selection_bias", directory=finished.record.directory)
