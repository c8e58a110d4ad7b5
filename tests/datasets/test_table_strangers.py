"""Tables as strangers bring them, drawn after four of UCI's: heart, bikes, wine and air quality."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from oodbench.errors import UserError
from oodbench.settings.fields import configure
from oodbench_datasets.table.markers import find_marker
from oodbench_datasets.table.table import Table

HOSPITALS = ("cleveland", "hungarian", "va")
HEART = ("age", "sex", "chol", "slope", "num")


def table(path: Path, **settings: Any) -> Table:
    return configure(Table, {"path": str(path)} | settings, "dataset 'table'")


@pytest.fixture
def heart(tmp_path: Path) -> Path:
    """A file without names for each hospital."""
    rng = np.random.default_rng(2)
    for hospital in HOSPITALS:
        age, sex, slope, num = (rng.integers(low, high, 60) for low, high in ((30, 80), (0, 2), (1, 4), (0, 5)))
        chol = np.zeros(60) if hospital == "va" else rng.normal(240, 30, 60).round(1)
        rows = pd.DataFrame({"age": age, "sex": sex, "chol": chol, "slope": slope.astype(str), "num": num})
        rows.loc[::7, "slope"] = "?"
        rows.to_csv(tmp_path / f"processed.{hospital}.data", index=False, header=False)
    (tmp_path / "notes.txt").write_text("about the hospitals")
    return tmp_path


def of_heart(path: Path, **settings: str) -> Table:
    usual = {"header": ",".join(HEART), "missing": "?", "environment": "file", "train": "processed.cleveland"}
    return table(path, target="num", **usual | settings)


def test_files_without_names(heart: Path) -> None:
    data = of_heart(heart, positive=">0")
    assert data.columns == ("age", "sex", "chol", "slope=1", "slope=2", "slope=3", "slope missing")
    assert [(one.name, len(one)) for one in data.test(0)] == [("processed.hungarian", 60), ("processed.va", 60)]
    assert [row["rows"] for row in data.describe_data()["files"]] == [60, 60, 60]
    frames = [pd.read_csv(heart / f"processed.{hospital}.data", names=HEART) for hospital in HOSPITALS]
    titles = [f"processed.{hospital}" for hospital in HOSPITALS]
    pd.concat([frame.assign(file=title) for frame, title in zip(frames, titles, strict=True)]).to_csv(
        heart / "named.csv", index=False
    )
    named = of_heart(heart / "named.csv", header="", positive=">0")
    assert named.columns == data.columns
    assert np.array_equal(named.test(1)[1].x, data.test(1)[1].x)


def test_a_file_without_names_says_so(heart: Path) -> None:
    for settings, expected in (
        ({"header": ""}, "has values, such as"),
        ({"header": "age,sex"}, "header names 2 columns, and the first line of"),
        ({"header": "age,sex,chol,slope,age"}, "header names column 'age' twice"),
        ({"missing": "?,chool=0"}, "there is no column 'chool'. Did you mean 'chol'?"),
    ):
        with pytest.raises(UserError) as caught:
            _ = of_heart(heart / "processed.*", **settings).task
        assert expected in str(caught.value)
        assert len(str(caught.value).splitlines()) <= 2
    (heart / "one.txt").write_text("30,0,0.5,?,2\n31,1,0.25,2,1\n")
    with pytest.raises(UserError, match=r"one\.txt has: 30, 0, 0\.5, \?, 2\. Its first line has values"):
        _ = of_heart(heart / "one.txt", header="").task


def test_names_are_not_given_to_a_parquet_file(heart: Path) -> None:
    pd.DataFrame({"x": [1.0, 2.0]}).to_parquet(heart / "t.parquet")
    with pytest.raises(UserError, match="Remove header"):
        _ = of_heart(heart / "t.parquet").task


def test_whole_numbers_as_a_target_are_said_to_be_quantities(heart: Path) -> None:
    warned = "column 'num' is the target, a whole number with 5 distinct values, and is predicted as a quantity"
    assert of_heart(heart).warnings[0].startswith(warned)
    for settings in ({"task": "classification"}, {"task": "regression"}, {"positive": ">0"}):
        assert not any("quantity" in warning for warning in of_heart(heart, **settings).warnings)


def test_a_marker_of_one_column(heart: Path) -> None:
    """0 stands for a missing value in one column, and for itself in others."""
    (warning,) = of_heart(heart, positive=">0").warnings
    assert warning == (
        "column 'chol': 60 values are 0, apart from all others. If it stands for a missing value, set missing=chol=0."
    )
    data = of_heart(heart, positive=">0", missing="?,chol=0", train="processed.va,processed.cleveland")
    assert data.warnings == []
    assert data.columns is not None
    assert data.columns[:4] == ("age", "sex", "chol", "chol missing")
    raw = pd.DataFrame({"age": [50] * 2, "sex": [0, 1], "chol": ["0", "240"], "slope": ["?", "1"]})
    gaps = data.encoder(0).encode_rows(raw)[:, data.columns.index("chol missing")]
    assert gaps[0] > gaps[1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-200.0] * 5, -200.0),
        ([999.0] * 3, 999.0),
        ([-200.0], None),  # once
        ([-200.5] * 3, None),  # not whole
        ([], None),
    ],
)
def test_numbers_that_are_apart(values: list[float], expected: float | None) -> None:
    usual = np.random.default_rng(0).normal(100, 30, 400).clip(1).round(1)
    assert find_marker(np.array([*usual, *values, np.nan])) == expected


def test_counts_and_amounts_have_no_markers() -> None:
    rng = np.random.default_rng(0)
    assert find_marker(rng.poisson(9, 500).astype(float)) is None
    assert find_marker(np.where(rng.random(500) < 0.7, 0.0, rng.exponential(40, 500).round(2))) is None
    assert find_marker(np.repeat([-2.0, 1.0, 2.0], 50)) is None


def test_bikes_whose_parts_add_up(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    days = pd.date_range("2011-01-01", periods=120, freq="6D")
    casual, registered = rng.poisson(30, 120), rng.poisson(200, 120)
    frame = pd.DataFrame({"dteday": days.date, "yr": days.year - 2011, "temp": rng.normal(size=120).round(3)})
    frame.assign(at=[f"{hour % 24:02}:00" for hour in range(120)], casual=casual, registered=registered).assign(
        cnt=casual + registered
    ).to_csv(tmp_path / "day.csv", index=False)
    data = table(tmp_path / "day.csv", target="cnt", environment="yr", train="0")
    dates, leak = data.warnings
    assert dates.startswith("column 'dteday' has dates, and is left out. Set dates=dteday")
    assert leak.startswith(
        "columns 'casual' and 'registered' together give the target. Leave them out with drop=casual"
    )
    kinds = {row["column"]: row["read as"] for row in data.describe_data()["columns"]}
    assert kinds["dteday"] == "dropped: dates, and not in dates"
    assert kinds["at"] == "category"
    raw = pd.read_csv(tmp_path / "day.csv")
    assert np.allclose(data.encoder(0).encode_rows(raw[raw["yr"] == 1]), data.test(0)[0].x)
    by_bound = table(tmp_path / "day.csv", target="cnt", environment="yr", train="0", positive=">230", dates="dteday")
    assert [warning for warning in by_bound.warnings if "together" in warning] == [leak]
    without = table(tmp_path / "day.csv", target="cnt", environment="yr", train="0", drop="casual,dteday")
    assert without.warnings == []


def test_air_whose_environments_are_dates(tmp_path: Path) -> None:
    lines = [f"{day:02}/03/{year};{day},5;{-200 if day % 9 == 0 else day + 100};;" for year in (2004, 2005)
             for day in range(1, 29)]  # fmt: skip
    (tmp_path / "air.csv").write_text("\n".join(["Date;CO;NOx;;", *lines, *[";;;;"] * 9]) + "\n")
    with pytest.raises(UserError, match="They are dates: set dates=Date and environment='Date year'"):
        _ = table(tmp_path / "air.csv", target="CO", environment="Date", train="2004").task
    how = {"target": "CO", "environment": "Date year", "train": "2004", "dates": "Date", "decimal": "comma"}
    data = table(tmp_path / "air.csv", **how, date_parts="weekday")
    assert data.rows_left_out == {"no target": 9}
    (marker,) = (warning for warning in data.warnings if "missing=-200" in warning)
    assert marker.startswith("column 'NOx': 6 values are -200")
    assert table(tmp_path / "air.csv", **how, date_parts="weekday", missing="-200").rows_left_out == {"no target": 9}
