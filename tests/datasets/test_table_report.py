"""What `oodbench show table --set ...` says of a table, and what it warns of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from oodbench.errors import UserError
from oodbench.report.console import ConsoleProgress
from oodbench.report.describe import describe_plugin
from oodbench.settings.fields import configure
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.spec import StudyOptions
from oodbench_datasets.table.table import Table

Cli = Callable[..., Any]

ROWS = 90


def make_frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "place": np.repeat(["a", "b", "c"], ROWS // 3),
            "age": rng.integers(20, 70, ROWS),
            "height": rng.normal(170, 9, ROWS),
            "job": rng.choice(["cook", "smith"], ROWS),
            "pay": rng.normal(100, 9, ROWS),
        }
    )


def write(folder: Path, **columns: Any) -> Path:
    make_frame().assign(**columns).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def table(path: Path, **settings: Any) -> Table:
    usual = {"path": str(path), "target": "pay", "environment": "place", "train": "a,b"}
    return configure(Table, usual | settings, "dataset 'table'")


def test_show_says_how_every_column_was_read(tmp_path: Path) -> None:
    pay = make_frame()["pay"].mask(np.arange(ROWS) < 4)
    height = make_frame()["height"].mask(np.arange(ROWS) % 10 == 5)
    names = [f"name {row}" for row in range(ROWS)]
    path = write(tmp_path, pay=pay, height=height, flat=1, names=names, job2="x")
    settings = {"path": str(path), "target": "pay", "environment": "place", "train": "a", "test": "b", "drop": "job2"}
    shown = describe_plugin("table", settings)
    columns = {row["column"]: tuple(row.values())[1:] for row in shown["columns"]}
    assert columns == {
        "place": ("environment", 2, 0, 0),
        "age": ("number", make_frame()["age"][4:60].nunique(), 0, 1),
        "height": ("number", 50, 6, 2),
        "job": ("category", 2, 0, 2),
        "pay": ("target, regression", 56, 0, 0),
        "flat": ("dropped: constant in the training environments", 1, 0, 0),
        "names": ("category", 56, 0, 26),
        "job2": ("dropped: in drop", "", "", 0),
    }
    assert [(row["environment"], row["role"], row["rows"]) for row in shown["environments"]] == [
        ("a", "train, validation", 26),
        ("b", "test", 30),
    ]
    assert shown["environments"][1]["mean of target"] == f"{make_frame()['pay'][30:60].mean():.4g}"
    assert [tuple(row.values()) for row in shown["rows"]] == [
        ("in the file", 90), ("left out: no target", 4), ("left out: environment in no role", 30), ("used", 56),
    ]  # fmt: skip


def test_shares_of_classes_in_every_environment(tmp_path: Path) -> None:
    data = table(write(tmp_path), target="job")
    jobs = make_frame().groupby("place")["job"].apply(lambda jobs: f"{(jobs == 'smith').mean():.3f}")
    assert [row["share of smith"] for row in data.describe_data()["environments"]] == list(jobs)


NUMBERS = [f"{number}.5" for number in range(ROWS)]
WARNED = [
    ({"chol": ["?", "?", *NUMBERS[2:]]}, "column 'chol' has numbers in 88 rows and text in 2, such as '?'"),
    ({"ca": [*NUMBERS[:20], *["?"] * 70]}, "column 'ca' has numbers in 20 rows and text in 70, such as '?'"),
    ({"price": [f"1,{number:03}.56" for number in range(ROWS)]}, "column 'price' has numbers such as '1,000.56'"),
    ({"id": range(7, 7 + ROWS)}, "column 'id' counts the rows"),
    ({"id": np.random.default_rng(1).permutation(10**6)[:ROWS]}, "column 'id' has another whole number in every row"),
    ({"key": [f"k{number * 7919 % 1000}" for number in range(ROWS)]}, "column 'key' has another text in every row"),
    ({"born": [f"{1 + number % 28}.03.2020" for number in range(ROWS)]}, "column 'born' has dates such as '1.03.2020'"),
    ({"copy": lambda frame: 3 - 2 * frame["pay"]}, "column 'copy' nearly equals the target"),
    ({"wide": lambda frame: frame["height"].mask(frame.index == 80, 1e20)}, "column 'wide' is 1e+20 in environment"),
]


@pytest.mark.parametrize(("columns", "expected"), WARNED)
def test_what_looks_wrong_is_warned_of(tmp_path: Path, columns: dict[str, Any], expected: str) -> None:
    (warning,) = table(write(tmp_path, **columns)).warnings
    assert warning.startswith(expected)


def test_a_clean_table_has_no_warnings(tmp_path: Path) -> None:
    assert table(write(tmp_path)).warnings == []
    assert configure(Table, Table.tiny, "dataset 'table'").warnings == []


def test_copies_of_a_class_and_columns_that_vanish(tmp_path: Path) -> None:
    path = write(tmp_path, level=lambda frame: frame["job"].str.upper(), score=lambda frame: 1.0 * (frame["job"] < "d"))
    warnings = table(path, target="job").warnings
    assert [text.partition(" nearly")[0] for text in warnings] == ["column 'level'", "column 'score'"]
    words = [f"w{number % 45}" for number in range(ROWS)]
    (warning,) = table(write(tmp_path, word=words), rare=0.05).warnings
    assert warning.startswith("column 'word' gives no feature: all of its 45 levels are rare")


def test_show_on_the_command_line(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path, id=range(ROWS))
    settings = ["--set", f"path={path}", "--set", "target=pay", "--set", "environment=place", "--set", "train=a"]
    shown = cli("show", "table", *settings)
    assert shown.code == 0, shown.err
    assert "warning  column 'id' counts the rows. Leave it out with drop=id" in shown.out
    assert cli("show", "table", *settings, "--json").json()["columns"][0]["read as"] == "environment"
    refused = cli("show", "erm", "--set", "a=b")
    assert refused.code == 2
    assert "--set is for datasets" in refused.err
    assert cli("show", "selection_bias", "--set", "r1=1.5", "--json").json()["name"] == "selection_bias r1=1.5"


def test_show_refuses_what_a_run_would(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'pay'"):
        describe_plugin("table", {"path": str(write(tmp_path)), "target": "pai", "environment": "place", "train": "a"})


def test_the_plan_of_a_run_counts_the_rows_that_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, pay=make_frame()["pay"].mask(np.arange(ROWS) < 4))
    settings = {"path": str(path), "target": "pay", "environment": "place", "train": "a", "where": "place!=c"}
    assert table(path, train="a", where="place!=c").rows_left_out == {"not in where": 30, "no target": 4}
    options = StudyOptions(settings=settings, trials=1, seeds=1)
    ConsoleProgress(Console(stderr=True, width=200)).plan(
        plan(resolve(Request(["erm"], ["table"], options)), "cpu"), ""
    )
    assert "rows      left out: 34 (30 not in where, 4 no target)\n" in capsys.readouterr().err


def test_the_target_of_a_regression_is_scaled_and_classes_are_not(tmp_path: Path) -> None:
    assert table(write(tmp_path)).target_is_scaled
    assert not table(tmp_path / "t.csv", target="job").target_is_scaled
