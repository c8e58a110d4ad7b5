"""The model that is kept takes raw rows: from raw files through every door, its answers are the study's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import oodbench
from migrated import share_migrations
from oodbench.encoder import Encoder, Levels
from oodbench.encoder.columns import level_text
from oodbench.encoder.dates import part_names
from oodbench.engine.data import Environment
from oodbench.engine.scoring import score
from oodbench.errors import UserError
from oodbench.record.artifacts import write_artifacts
from oodbench.record.delivery import deliver
from oodbench.record.outbox import Outbox
from oodbench.record.tracking import Record
from oodbench_datasets.table.table import Table
from raw_tables import TREES, Case, make_case

KINDS = ["numbers", "categories", "regression", "three", "census"]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Case]:
    folder = tmp_path_factory.mktemp("raw")
    return lambda name, method="erm": make_case(name, folder, method)


@pytest.fixture(scope="module")
def kept(case: Callable[..., Case], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of the model of a seed, as it is recorded."""
    folders: dict[tuple[str, str], Path] = {}

    def folder(name: str, seed: int, method: str = "erm") -> Path:
        if (name, method) not in folders:
            folders[name, method] = tmp_path_factory.mktemp("artifacts")
            write_artifacts(case(name, method).outcome, folders[name, method])
        return folders[name, method] / f"models/seed-{seed}"

    return folder


def own_answers(case: Case, part: str, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """Predictions and probabilities of the study's model, on its own encoded rows."""
    model: Any = case.outcome.models[seed]
    encoder = case.study.data.encoders[seed]
    assert encoder is not None
    answers: dict[str, tuple[np.ndarray, np.ndarray | None]] = {}
    for environment in getattr(case.study.dataset, part)(seed):
        predicted = model.predict(environment.x)
        if encoder.classes:
            names = np.array(encoder.classes, dtype=object)[predicted]
            answers[environment.name] = names, model.predict_proba(environment.x)
        else:
            answers[environment.name] = encoder.center + encoder.scale * predicted, None
    return answers


def check_answers(frame: pd.DataFrame, expected: tuple[np.ndarray, np.ndarray | None]) -> None:
    predicted, probabilities = expected
    if probabilities is None:
        np.testing.assert_allclose(frame["prediction"], predicted, rtol=1e-6)
    else:
        assert frame["prediction"].tolist() == predicted.tolist()
        np.testing.assert_allclose(frame.iloc[:, 1:], probabilities, rtol=0, atol=1e-6)


def load(folder: Path) -> Any:
    from mlflow.pyfunc import load_model

    return load_model(str(folder))


@pytest.mark.parametrize(("kind", "method"), [*((kind, "erm") for kind in KINDS), ("categories", TREES)])
def test_a_kept_model_answers_raw_rows_as_the_study_does(
    case: Callable[..., Case], kept: Callable[..., Path], kind: str, method: str
) -> None:
    study = case(kind, method)
    for seed in study.study.seeds:
        model = load(kept(kind, seed, method))
        for part in ("train", "test"):
            expected = own_answers(study, part, seed)
            for name, rows in study.raw(part, seed).items():
                shuffled = rows[list(rows.columns[::-1])].assign(extra=1)
                check_answers(model.predict(shuffled), expected[name])


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_raw_training_rows_are_the_recorded_ones(
    case: Callable[..., Case], kept: Callable[..., Path], kind: str
) -> None:
    study = case(kind)
    results = study.outcome.results
    results = results[results["chosen"] & (results["part"] == "train")]
    encoder = study.study.data.encoders[0]
    assert encoder is not None
    rows = study.raw("train", 0)
    for environment in study.study.dataset.train(0):
        frame = load(kept(kind, 0)).predict(rows[environment.name])
        recorded = results[(results["seed"] == 0) & (results["environment"] == environment.name)]
        if encoder.classes:
            target = np.array(encoder.classes, dtype=object)[environment.y]
            assert (frame["prediction"].to_numpy() == target).mean() == pytest.approx(recorded["accuracy"].item())
        else:
            errors = (frame["prediction"].to_numpy() - rows[environment.name]["pay"].to_numpy()) / encoder.scale
            assert np.square(errors).mean() == pytest.approx(recorded["error"].item(), rel=1e-6)


def test_the_signature_has_raw_names_and_the_metadata_their_kinds(kept: Callable[..., Path]) -> None:
    metadata = load(kept("categories", 0)).metadata
    assert metadata.metadata["columns"] == {
        "size": "number", "weight": "number", "color": "text", "shop": "text", "stars": "code", "grade": "rank",
        "open": "truth", "day": "date", "cost": "number",
    }  # fmt: skip
    assert metadata.get_input_schema().input_names() == list(metadata.metadata["columns"])
    assert metadata.get_output_schema().input_names() == ["prediction", "probability_no", "probability_yes"]


# ---- taken away


@pytest.fixture(scope="module")
def recorded(
    case: Callable[..., Case], migrated: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., tuple[str, Path]]:
    """The run id of a study, and the directory of its record."""
    share_migrations(migrated)
    directory = tmp_path_factory.mktemp("record")
    runs: dict[tuple[str, str], str] = {}

    def run(name: str, method: str = "erm") -> tuple[str, Path]:
        if (name, method) not in runs:
            parcel = Outbox(directory).put(case(name, method).outcome, "", fresh=True)
            record = Record(None, directory)
            deliver(record, parcel)
            (concluded,) = record.records_of([case(name, method).study])
            runs[name, method] = concluded.run_id
        return runs[name, method], directory

    return run


@pytest.fixture(scope="module")
def exported(
    recorded: Callable[..., tuple[str, Path]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    folders: dict[tuple[str, str], Path] = {}

    def export(name: str, method: str = "erm") -> Path:
        if (name, method) not in folders:
            run, directory = recorded(name, method)
            folder = tmp_path_factory.mktemp("taken") / "new" / name
            folders[name, method] = oodbench.export(run, folder, directory=directory)
        return folders[name, method]

    return export


def mean_answers(case: Case) -> tuple[pd.DataFrame, np.ndarray]:
    """Raw test rows of all environments, and the means of the models' values or probabilities."""
    raw = case.raw("test", case.study.seeds[0])
    answers = []
    for seed in case.study.seeds:
        own = own_answers(case, "test", seed)
        pairs = [own[name] for name in raw]
        answers.append(np.concatenate([values if chances is None else chances for values, chances in pairs]))
    return pd.concat(raw.values()), np.mean(answers, axis=0)


def check_means(frame: pd.DataFrame, expected: np.ndarray, classes: tuple[str, ...]) -> None:
    if classes:
        np.testing.assert_allclose(frame.iloc[:, 1:], expected, rtol=0, atol=1e-6)
        assert frame["prediction"].tolist() == [classes[place] for place in expected.argmax(1)]
    else:
        np.testing.assert_allclose(frame["prediction"], expected, rtol=1e-6)


@pytest.mark.parametrize(("kind", "method"), [*((kind, "erm") for kind in KINDS), ("categories", TREES)])
def test_exported_models_answer_alike_through_every_door(
    case: Callable[..., Case],
    exported: Callable[..., Path],
    cli: Callable[..., Any],
    tmp_path: Path,
    kind: str,
    method: str,
) -> None:
    folder = exported(kind, method)
    rows, expected = mean_answers(case(kind, method))
    model = oodbench.load_model(folder)
    assert len(model.members) == 2
    check_means(model.predict(rows), expected, model.classes)
    check_means(load(folder).predict(rows), expected, model.classes)
    rows.to_csv(tmp_path / "new.csv", index=False)
    rows.to_parquet(tmp_path / "new.parquet", index=False)
    source, out = ("new.parquet", "out.parquet") if kind == "numbers" else ("new.csv", "out.csv")
    done = cli("predict", str(folder), source, "-o", out)
    assert done.code == 0, done.err
    read = pd.read_parquet(tmp_path / out) if out == "out.parquet" else pd.read_csv(tmp_path / out)
    check_means(read, expected, model.classes)


def onnx_inputs(session: Any, encoder: Encoder, rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Raw values as the graph takes them: doubles and texts; of dates, the parts."""
    columns = dict(rows.items())
    for raw in encoder.raw:
        if raw.kind == "date":
            read = encoder.read(rows)
            for name in part_names(raw.name, raw.parts):
                part = read[name]
                columns[name] = (
                    pd.Series([*part.texts, ""]).iloc[part.codes] if isinstance(part, Levels) else pd.Series(part)
                )
    inputs = {}
    for one in session.get_inputs():
        values = columns[one.name]
        if one.type == "tensor(string)":
            texts = values.astype(object).where(values.notna(), "")
            inputs[one.name] = np.array([[level_text(text)] for text in texts], dtype=object)
        else:
            numbers = values.str.replace(",", "") if values.dtype == "str" else values
            inputs[one.name] = numbers.to_numpy(np.float64)[:, None]
    return inputs


@pytest.mark.parametrize("kind", KINDS)
def test_onnx_answers_the_same(
    case: Callable[..., Case], recorded: Callable[..., tuple[str, Path]], tmp_path: Path, kind: str
) -> None:
    import onnxruntime

    run, directory = recorded(kind)
    oodbench.export(run, tmp_path / "taken", directory=directory, onnx=True)
    rows, expected = mean_answers(case(kind))
    session = onnxruntime.InferenceSession(tmp_path / "taken" / "model.onnx", providers=["CPUExecutionProvider"])
    model = oodbench.load_model(tmp_path / "taken")
    answers = session.run(None, onnx_inputs(session, model.members[0].encoder, rows))
    if model.classes:
        np.testing.assert_allclose(answers[1], expected, rtol=0, atol=1e-5)
        assert answers[0][:, 0].tolist() == [model.classes[place] for place in expected.argmax(1)]
    else:
        np.testing.assert_allclose(answers[0][:, 0], expected, rtol=1e-5)


def test_one_seed_alone(case: Callable[..., Case], recorded: Callable[..., tuple[str, Path]], tmp_path: Path) -> None:
    run, directory = recorded("three")
    model = oodbench.load_model(oodbench.export(run, tmp_path / "one", directory=directory, seed=1))
    (rows,) = case("three").raw("test", 1).values()
    (expected,) = own_answers(case("three"), "test", 1).values()
    check_answers(model.predict(rows), expected)


@pytest.mark.parametrize("kind", ["regression", "three", "census"])
def test_refitted_models_are_those_of_all_training_rows(
    case: Callable[..., Case], recorded: Callable[..., tuple[str, Path]], tmp_path: Path, kind: str
) -> None:
    run, directory = recorded(kind)
    (member,) = oodbench.load_model(oodbench.export(run, tmp_path / "taken", directory=directory, refit=True)).members
    study = case(kind).study
    environments, encoder = study.dataset.all_train(0)
    assert member.encoder == encoder
    data: Any = study.dataset
    everything = {state: len(people) for state, people in data._rows(data.source).items()} if kind == "census" else {}
    assert {one.name: len(one) for one in environments} == (everything or {"a": 80, "b": 80})
    rows = Environment.pooled("all", environments)
    assert score(member.model, rows, data.task, data.classes)["error"] < 0.9 * constant_error(rows.y, data.task)


def constant_error(y: np.ndarray, task: str) -> float:
    return float(y.var()) if task == "regression" else 1 - np.bincount(y).max() / len(y)


def test_a_changed_file_is_not_refitted(recorded: Callable[..., tuple[str, Path]], case: Callable[..., Case]) -> None:
    run, directory = recorded("numbers")
    dataset = case("numbers").study.dataset
    assert isinstance(dataset, Table)
    path = Path(dataset.path)
    content = path.read_text()
    try:
        path.write_text(content.replace("yes", "no", 3))
        with pytest.raises(UserError, match="are not those of the study"):
            oodbench.export(run, directory / "taken", directory=directory, refit=True)
    finally:
        path.write_text(content)


def test_commands_for_programs_and_their_refusals(
    recorded: Callable[..., tuple[str, Path]], cli: Callable[..., Any], tmp_path: Path
) -> None:
    run, directory = recorded("three")
    done = cli("export", run[:8], "mine", "--directory", str(directory), "--seed", "0", "--json")
    assert done.json()["models"] == ["seed-0"]
    assert done.json()["classes"] == ["x", "y", "z"]
    (tmp_path / "new.csv").write_text("weight,color,size\n3,pink,40\n,,\n")
    said = cli("predict", "mine", "new.csv", "--json").json()
    assert (said["rows"], said["unknown_levels"], len(said["predictions"])) == (2, {"color": 1}, 2)
    (tmp_path / "bad.csv").write_text("weight,color,size\n3,red,large\n")
    for words, expected in (
        (["predict", "mine", "bad.csv"], "column 'size' has 'large' in row 1, which is not a number"),
        (["predict", "mine", "new.csv", "-o", "out.xlsx"], "has no known file extension"),
        (["export", run, "mine", "--directory", str(directory)], "mine exists already"),
    ):
        done = cli(*words)
        assert (done.code, len(done.err.splitlines())) == (2, 2), done.err
        assert expected in done.err


def test_what_cannot_be_exported_or_loaded_is_refused_in_two_lines(
    recorded: Callable[..., tuple[str, Path]], tmp_path: Path
) -> None:
    run, directory = recorded("three")
    trees, _ = recorded("categories", TREES)
    bad: list[tuple[str, dict[str, Any], str]] = [
        (run, {"seed": 7}, "no seed of the study '7'"),
        ("zzz", {}, "no studies in"),
        (trees, {"onnx": True}, "--onnx takes linear models"),
    ]
    for asked, options, expected in bad:
        with pytest.raises(UserError, match=expected) as caught:
            oodbench.export(asked, tmp_path / "other", directory=directory, **options)
        assert len(str(caught.value).splitlines()) == 2
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match="has no exported model"):
        oodbench.load_model(tmp_path)


def test_without_onnx_two_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("oodbench.study.onnx_graph.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'oodbench\[onnx\]'"):
        oodbench.export("run", tmp_path / "taken", onnx=True)
