"""The weight column of a table: what it is read as, what is refused, and that it is no feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from oodbench.engine.data import Environment
from oodbench.engine.fitted import constant_model
from oodbench.engine.scoring import score
from oodbench.errors import UserError
from oodbench.plugin.described import write_description
from oodbench.report.describe import describe_plugin
from oodbench.settings.fields import configure
from oodbench_datasets.table.table import Table

ROWS = 120
USUAL = {"target": "pay", "environment": "place", "train": "a,b", "weight": "count"}


def write(folder: Path, **columns: Any) -> Path:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "place": np.repeat(["a", "b", "c"], ROWS // 3),
            "age": rng.normal(50, 9, ROWS),
            "pay": rng.normal(100, 9, ROWS),
            "count": np.arange(ROWS) % 5 + 0.5,
        }
    )
    frame.assign(**columns).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def table(path: Path, **settings: Any) -> Table:
    return configure(Table, {"path": str(path), **USUAL, **settings}, "dataset 'table'")


def test_the_column_counts_rows_and_is_no_feature(tmp_path: Path) -> None:
    made = table(write(tmp_path))
    assert made.columns == ("age",)
    assert [raw.name for raw in made.encoder(0).raw] == ["age"]  # so that a prediction does not ask for it
    assert made.notice == "Rows are weighted by the column 'count'."
    (a, b), (c,), (whole, *_) = made.train(0), made.test(0), made.all_train(0)[0]
    assert c.weights is not None
    assert np.array_equal(c.weights, np.arange(80, ROWS) % 5 + 0.5)
    assert len(whole) == 40
    assert whole.weights is not None
    assert whole.weights.sum() == pytest.approx(100)
    pooled = Environment.pooled("training", [a, b])
    mean = constant_model(pooled.y, "regression", 2, 1, pooled.weights)
    assert score(mean, pooled, "regression", 2)["error"] == pytest.approx(1)


def test_rows_of_weight_0_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path, count=np.arange(ROWS) % 4)
    assert table(path).rows_left_out == {"count is 0": 30}
    assert table(path, where="age>0,count>1").rows_left_out == {"not in where": 60}
    shown = describe_plugin("table", {"path": str(path), **USUAL})
    assert [row["read as"] for row in shown["columns"] if row["column"] == "count"] == ["weight"]
    assert {"rows": "left out: count is 0", "count": 30} in shown["rows"]
    assert [(row["rows"], row["weight"]) for row in shown["environments"]] == [(30, "60")] * 3


@pytest.mark.parametrize(
    ("columns", "settings", "said"),
    [
        ({"count": np.arange(ROWS) - 2}, {}, "the weight 'count' is negative in 2 rows, first in row 1.\n"),
        ({"count": [1, None] * (ROWS // 2)}, {}, "the weight 'count' is missing in 60 rows, first in row 2.\n"),
        ({"count": [1, np.inf] * (ROWS // 2)}, {}, "column 'count' has 60 infinite values.\n"),
        (
            {"count": ["1", "two"] * (ROWS // 2)},
            {},
            "as weight, column 'count' must hold numbers, but contains 'two'.\n",
        ),
        ({"count": 0}, {}, "the weight 'count' is 0 in all rows.\n"),
        ({}, {"weight": "pay"}, "column 'pay' is both in target and in weight.\n"),
        ({}, {"weight": "place"}, "column 'place' is both in environment and in weight.\n"),
        ({}, {"drop": "count"}, "column 'count' is both in drop and in weight.\n"),
        ({}, {"numeric": "count"}, "column 'count' is both in weight and in numeric.\n"),
        ({}, {"dates": "count"}, "column 'count' is both in dates and in weight.\n"),
        ({}, {"weight": "counts"}, "there is no column 'counts'"),
    ],
)
def test_bad_weights_are_refused_in_two_lines(tmp_path: Path, columns: Any, settings: Any, said: str) -> None:
    with pytest.raises(UserError) as refused:
        _ = table(write(tmp_path, **columns), **settings).task
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 2


def test_a_description_keeps_the_weight(tmp_path: Path) -> None:
    write(tmp_path)
    written = write_description("table", str(tmp_path / "t.csv"), USUAL, tmp_path)
    assert 'weight = "count"' in written.read_text()
