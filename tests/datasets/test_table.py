"""A table of the user's own: through the command line, and against encodings computed by hand."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import oodbench
from oodbench import check_dataset
from oodbench.errors import UserError
from oodbench.settings.fields import configure
from oodbench_datasets.table.table import Table
from places import CENSUS as FOLDER

Cli = Callable[..., Any]

CENSUS = FOLDER / "travel_time.parquet"
BUDGET = ["--trials", "2", "--seeds", "2", "--set-training", "steps=20"]


def make_frame(rows: int = 60) -> pd.DataFrame:
    """Three environments; `income` rises with `age`, `job` is text with gaps, `size` is a code of four values."""
    rng = np.random.default_rng(1)
    frames = []
    for state in ("MA", "NY", "CA"):
        age = rng.uniform(20, 60, rows)
        job = rng.choice(["cook", "smith", "clerk"], rows).astype(object)
        job[rng.random(rows) < 0.2] = None
        weight = rng.normal(70, 10, rows)
        weight[rng.random(rows) < 0.1] = np.nan
        frames.append(
            pd.DataFrame(
                {
                    "state": state,
                    "age": age,
                    "job": job,
                    "weight": weight,
                    "size": rng.integers(1, 5, rows),
                    "member": rng.random(rows) < 0.5,
                    "income": 1000 * age + rng.normal(0, 5000, rows),
                    "level": np.where(age > 45, "senior", np.where(age > 30, "mid", "junior")),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def table(file: Path | str, **settings: Any) -> Table:
    """As a user sets it."""
    usual = {"path": str(file), "target": "income", "environment": "state", "train": "MA"}
    return configure(Table, usual | settings, "dataset 'table'")


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    make_frame().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One record for all runs here: a new one takes seconds."""
    return tmp_path_factory.mktemp("record")


def at(record: Path) -> list[str]:
    return ["--directory", str(record)]


def set_options(**settings: str) -> list[str]:
    return [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]


def test_conforms() -> None:
    check_dataset(Table)


def test_the_columns_of_every_category_are_declared(csv: Path) -> None:
    dataset = table(csv, drop="level")
    declared = [[dataset.columns[place] for place in places] for places in dataset.categories]
    assert declared == [
        ["job=clerk", "job=cook", "job=smith", "job missing"],
        ["size=1", "size=2", "size=3", "size=4"],
        ["member=false", "member=true"],
    ]
    x = dataset.train(0)[0].x
    assert all((x[:, list(places)].sum(1) == 1).all() for places in dataset.categories)


def test_three_classes_from_the_command_line(cli: Cli, ray_address: str, csv: Path, record: Path) -> None:
    settings = set_options(path="people.csv", environment="state", train="MA,NY", target="level", drop="income")
    done = cli("run", "-m", "irm", "-d", "table", *settings, *BUDGET, "--address", ray_address, *at(record), "--json")
    assert done.code == 0, done.err
    (board,) = done.json()
    assert board["dataset_id"] == "table path=people.csv target=level environment=state train=MA,NY drop=income"
    (row,) = board["rows"]
    assert row["information"] == "environments"
    assert 0 < row["metrics"]["mean_accuracy"]["value"] <= 1


def test_a_changed_test_environment_is_another_study(csv: Path, ray_address: str, record: Path) -> None:
    def run() -> tuple[str, float]:
        result = oodbench.run(
            "erm", "table", settings={"path": csv, "target": "income", "environment": "state", "train": "MA"},
            trials=1, seeds=1, recipe={"steps": 20}, directory=record,
        )  # fmt: skip
        (row,) = result.leaderboard().rows
        error = row.cells["mean_error"].value
        assert error is not None
        return row.run_id, error

    first, again = run(), run()
    assert first == again
    frame = pd.read_csv(csv)
    frame.loc[frame["state"] == "CA", "income"] += 1e5
    frame.to_csv(csv, index=False)
    changed = run()
    assert changed[0] != first[0]
    assert changed[1] > first[1] + 1


def test_csv_and_parquet_and_compressed_give_the_same_rows(tmp_path: Path) -> None:
    frame = make_frame()
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    frame.assign(job=frame["job"].astype("category")).to_parquet(tmp_path / "a.parquet")
    made = [table(tmp_path / f"a.{ending}").train(3)[0] for ending in ("csv", "tsv", "csv.gz", "parquet")]
    for other in made[1:]:
        assert np.allclose(other.x, made[0].x)
        assert np.allclose(other.y, made[0].y)
    sources = {table(tmp_path / f"a.{ending}").file_hash for ending in ("csv", "tsv", "parquet")}
    assert len(sources) == 3


def test_the_encoding_is_learnt_from_the_training_rows(csv: Path) -> None:
    data = table(csv, drop="level")
    names = list(data.columns)
    assert names == [
        "age", "job=clerk", "job=cook", "job=smith", "job missing", "weight", "weight missing",
        "size=1", "size=2", "size=3", "size=4", "member=false", "member=true",
    ]  # fmt: skip
    (train,), (validation,) = data.train(0), data.validation(0)
    assert (len(train), len(validation)) == (42, 18)
    frame = pd.read_csv(csv)
    age = names.index("age")
    assert abs(train.x[:, age].mean()) < 1e-12
    assert abs(train.x[:, age].std() - 1) < 1e-12
    assert abs(train.y.mean()) < 1e-12
    here = frame[frame["state"] == "MA"]
    # the rows are found again by their target, which is a straight line of the column
    slope, offset = np.polyfit(np.sort(np.concatenate([train.y, validation.y])), np.sort(here["income"]), 1)
    origin = {round(income): index for index, income in here["income"].items()}
    rows = here.loc[[origin[round(value)] for value in slope * train.y + offset]]
    assert np.allclose(train.x[:, age], (rows["age"] - rows["age"].mean()) / rows["age"].std(ddof=0))
    filled = rows["weight"].fillna(rows["weight"].median())
    assert np.allclose(train.x[:, names.index("weight")], (filled - filled.mean()) / filled.std(ddof=0))
    assert np.array_equal(train.x[:, names.index("weight missing")], rows["weight"].isna())
    for level in ("clerk", "cook", "smith"):
        assert np.array_equal(train.x[:, names.index(f"job={level}")], rows["job"] == level)
    assert np.array_equal(train.x[:, names.index("job missing")], rows["job"].isna())
    # test rows are scaled by the same numbers
    (test, _) = data.test(0)
    there = frame[frame["state"] == test.name]
    assert np.allclose(np.sort(test.x[:, age]), np.sort((there["age"] - rows["age"].mean()) / rows["age"].std(ddof=0)))


def test_training_and_validation_share_the_rows_of_the_training_environments(csv: Path) -> None:
    data = table(csv, train="MA,NY")
    train, validation = data.train(0), data.validation(0)
    assert [one.name for one in train] == [one.name for one in validation] == ["MA", "NY"]
    assert [one.name for one in data.test(0)] == ["CA"]
    incomes = pd.read_csv(csv).query("state in ('MA', 'NY')")["income"]
    together = np.sort(np.concatenate([one.y for one in (*train, *validation)]))
    slope, offset = np.polyfit(together, np.sort(incomes), 1)
    assert np.allclose(slope * together + offset, np.sort(incomes))


def test_rare_and_unseen_levels(tmp_path: Path) -> None:
    """Common levels have a column, rare ones share one, and what training never had stands in none."""
    frame = pd.DataFrame(
        {
            "where": ["a"] * 100 + ["b"] * 10,
            "word": ["x"] * 60 + ["y"] * 37 + ["r1", "r2", "r3"] + ["x"] * 5 + ["new"] * 5,
            "y": np.arange(110) % 2,
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = table(tmp_path / "t.csv", target="y", environment="where", train="a", rare=0.05)
    assert data.columns == ("word=x", "word=y", "word other")
    (test,) = data.test(0)
    assert test.x[:5].tolist() == [[1, 0, 0]] * 5
    other = float(np.any([row[2] for row in data.train(0)[0].x]))
    assert test.x[5:].tolist() == [[0, 0, other]] * 5


def test_settings_of_columns_and_rows(csv: Path) -> None:
    data = table(csv, numeric="size", categorical="member", drop="level,job", train_rows=20, validation_rows=7)
    assert "size" in data.columns
    assert "job=cook" not in data.columns
    (train,), (validation,) = data.train(0), data.validation(0)
    assert (len(train), len(validation)) == (20, 7)
    capped = table(csv, test_rows=11, test="CA")
    assert [(one.name, len(one)) for one in capped.test(0)] == [("CA", 11)]
    assert not np.array_equal(capped.test(0)[0].y, capped.test(1)[0].y)


def test_tasks_are_inferred_and_can_be_said(csv: Path) -> None:
    assert table(csv).task == "regression"
    level = table(csv, target="level")
    assert (level.task, level.classes) == ("classification", 3)
    assert (table(csv, target="member").task, table(csv, target="size").task) == ("classification", "regression")
    assert table(csv, target="size", task="classification").classes == 4
    above = table(csv, positive=">=40000")
    incomes = pd.read_csv(csv).query("state == 'NY'")["income"]
    (ny,) = (one for one in above.test(0) if one.name == "NY")
    assert ny.y.mean() == (incomes >= 40000).mean()
    senior = table(csv, target="level", positive="senior")
    assert (senior.task, senior.classes) == ("classification", 2)


def test_rows_without_target_or_environment_are_left_out(tmp_path: Path) -> None:
    frame = make_frame()
    frame.loc[frame.index[:20], "income"] = np.nan
    frame.loc[frame.index[60:70], "state"] = None
    frame.to_parquet(tmp_path / "t.parquet")
    data = table(tmp_path / "t.parquet")
    assert len(data.train(0)[0]) + len(data.validation(0)[0]) == 40
    assert {one.name: len(one) for one in data.test(0)} == {"NY": 50, "CA": 60}


def test_whole_numbers_name_environments(tmp_path: Path) -> None:
    frame = make_frame()
    frame["state"] = frame["state"].map({"MA": 25.0, "NY": 36.0, "CA": 6.0})
    frame.to_parquet(tmp_path / "t.parquet")
    assert [one.name for one in table(tmp_path / "t.parquet", train="25").test(0)] == ["6", "36"]


BAD = [
    ({"path": "none.csv"}, "path=none.csv cannot be read: No such file or directory."),
    ({"path": "."}, "classes.csv has a column 'flat', and constant.csv has not"),
    ({"path": "/**x"}, "path=/**x cannot be read"),
    ({"path": "none/*.csv"}, "path=none/*.csv has no table"),
    ({"path": "people.xlsx"}, "has no known file extension.\nSave it as one of .csv"),
    ({"path": "empty.csv"}, "empty.csv cannot be read: Empty CSV file"),
    ({"path": "header.csv"}, "header.csv has no rows"),
    ({"path": "not.parquet"}, "not.parquet cannot be read"),
    ({"path": "latin.csv"}, "latin.csv cannot be read"),
    ({"path": "ragged.csv"}, "ragged.csv cannot be read"),
    ({"path": "twice.csv"}, "has two columns 'age'"),
    ({"path": "lists.parquet"}, "column 'born' holds list<"),
    ({"path": "infinite.parquet"}, "column 'weight' has 1 infinite values"),
    ({"path": "large.csv"}, "column 'weight' has 1e+300, too large a number to compute with"),
    ({"path": "constant.csv"}, "no column varies in the training environments"),
    ({"path": "one.csv"}, "column 'state' has fewer than two environments"),
    ({"target": "incom"}, "there is no column 'incom'. Did you mean 'income'?\npeople.csv has: state, age"),
    ({"environment": "stat"}, "Did you mean 'state'?"),
    ({"drop": "agee"}, "Did you mean 'age'?"),
    ({"categorical": "jobb"}, "Did you mean 'job'?"),
    ({"train": "MAA"}, "column 'state' has no environment 'MAA'. Did you mean 'MA'?\nIts environments are: CA, MA, NY"),
    ({"test": "TX"}, "column 'state' has no environment 'TX'"),
    ({"train": "MA,NY,CA"}, "none is left to test on"),
    ({"train": "MA,MA"}, "environment 'MA' is twice in train"),
    ({"test": "MA"}, "environment 'MA' is both in train and in test"),
    ({"drop": "income"}, "column 'income' is both in target and in drop"),
    ({"target": "job", "task": "regression"}, "the target 'job' must hold numbers, but contains 'clerk'"),
    ({"target": "job", "positive": ">3"}, "the target 'job' must hold numbers"),
    ({"numeric": "job"}, "column 'job' must hold numbers, but contains 'clerk'"),
    ({"positive": ">1e9"}, "the target has one class: income >1e9 is always false"),
    ({"positive": ">many"}, "positive=>many cannot be read"),
    ({"target": "level", "positive": "seniro"}, "there is no value of target 'level' 'seniro'. Did you mean 'senior'?"),
    ({"positive": ">3", "task": "regression"}, "task=regression has none"),
    ({"task": "classification", "path": "many.csv"},
     "has 150 distinct values, too many for classes.\nChoose another target, task=regression, or a bound such as"),
    ({"target": "only_ma", "path": "classes.csv"},
     "'only_ma' is 'far' in a test environment, never in training.\nLeave such rows out with where=only_ma!=far"),
    ({"target": "broken", "path": "outside.parquet"},
     "'broken' is 'a\\nb' in a test environment, never in training.\nLeave such rows out of the file"),
    ({"target": "flat", "path": "classes.csv"}, "target 'flat' is always 3"),
    ({"target": "single", "path": "classes.csv"}, "the target has one class: 'single' has one value"),
    ({"train_rows": "60"}, "environment 'MA' has only 60 rows for train_rows=60"),
    ({"least_rows": "61"}, "environment 'MA' has 60 rows, fewer than least_rows=61"),
    ({"train_rows": "-1"}, "must be 0 or more"),
    ({"rare": "2"}, "rare is a share"),
    ({"task": "ranking"}, "task=ranking is not one of auto, regression, classification"),
]  # fmt: skip


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, frame = tmp_path_factory.mktemp("bad"), make_frame()
    frame.to_csv(folder / "people.csv", index=False)
    (folder / "people.xlsx").write_bytes(b"PK")
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("state,age,income\n")
    (folder / "not.parquet").write_text("state,age,income\n")
    (folder / "latin.csv").write_bytes("state,n\xe4me,income\nMA,1,2\nNY,2,3\n".encode("latin-1"))
    (folder / "ragged.csv").write_text("state,age,income\nMA,1,2\nNY,1\n")
    (folder / "twice.csv").write_text("state,age,age,income\nMA,1,1,2\nNY,1,2,3\n")
    frame.assign(born=pd.Series([[2000, 1]] * len(frame), dtype=object)).to_parquet(folder / "lists.parquet")
    infinite = frame.copy()
    infinite.loc[70, "weight"] = np.inf
    infinite.to_parquet(folder / "infinite.parquet")
    large = frame.copy()
    large.loc[170, "weight"] = 1e300  # a test row
    large.to_csv(folder / "large.csv", index=False)
    frame[["state", "income"]].assign(age=3).to_csv(folder / "constant.csv", index=False)
    frame[frame["state"] == "MA"].to_csv(folder / "one.csv", index=False)
    make_frame(150).to_csv(folder / "many.csv", index=False)
    far = np.where(frame["state"] == "MA", np.where(frame["age"] > 40, "near", "here"), "far")
    varies = np.where(frame["state"] == "MA", 3, np.arange(len(frame)))
    broken = np.where(far == "far", "a\nb", far)
    frame.assign(broken=broken).to_parquet(folder / "outside.parquet")
    frame.assign(only_ma=far, flat=varies, single=varies > 3).to_csv(folder / "classes.csv", index=False)
    return folder


@pytest.mark.parametrize(("settings", "expected"), BAD)
def test_mistakes_are_told_in_two_lines(
    bad_files: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], expected: str
) -> None:
    monkeypatch.chdir(bad_files)
    with pytest.raises(UserError) as caught:
        _ = table("people.csv", **settings).task
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "dataset 'table' needs path, target, environment, train.\nFor example: --set path="),
        ({"path": "none.csv", "target": "y", "environment": "e", "train": "a"}, "No such file"),
        ({"path": "people.csv", "target": "incom", "environment": "state", "train": "MA"}, "Did you mean 'income'?"),
    ],
)
def test_mistakes_end_the_command(cli: Cli, csv: Path, settings: dict[str, str], expected: str) -> None:
    done = cli("run", "-m", "erm", "-d", "table", *set_options(**settings))
    assert done.code == 2
    assert expected in done.err
    assert len(done.err.strip().splitlines()) == 2
    assert [path.name for path in csv.parent.iterdir()] == ["people.csv"]


def test_a_method_that_needs_environments_says_how_to_name_several(cli: Cli, csv: Path) -> None:
    settings = {"path": "people.csv", "target": "income", "environment": "state", "train": "MA"}
    done = cli("run", "-m", "irm", "-d", "table", *set_options(**settings))
    assert done.code == 2
    assert done.err.splitlines()[-2:] == [
        "error: method 'irm' needs environment labels, and 'table' has only one training environment.",
        "Name several, --set train=MA,OTHER, or a method that needs none.",
    ]


def test_without_settings_it_can_be_shown(cli: Cli) -> None:
    shown = cli("show", "table", "--json").json()
    assert shown["task"] == "depends on its settings"
    assert [row["name"] for row in shown["settings"]][:6] == ["path", "target", "environment", "train", "test", "task"]


@pytest.mark.skipif(not CENSUS.exists(), reason=f"the census table {CENSUS.name} is not beside the repository")
def test_the_census_by_hand(cli: Cli, ray_address: str, record: Path) -> None:
    """Massachusetts against the other states: commutes of more than 20 minutes."""
    settings = set_options(
        path=str(CENSUS), target="JWMNP", positive=">20", environment="ST", train="25", categorical="JWTRNS",
        train_rows="1000", validation_rows="1000", test_rows="200",
    )  # fmt: skip
    done = cli("run", "-m", "erm", "-d", "table", *settings, *BUDGET, "--address", ray_address, *at(record), "--json")
    assert done.code == 0, done.err
    (row,) = done.json()[0]["rows"]
    assert 0.4 < row["metrics"]["mean_accuracy"]["value"] < 0.75
