"""Texts of a table as they come: separators, markers of missing values, marks in numbers, dates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oodbench.encoder.dates import PARTS
from oodbench.encoder.numbers import MARKS
from oodbench.errors import UserError
from oodbench.settings.fields import configure
from oodbench_datasets.table.convert import convert_texts
from oodbench_datasets.table.dates import replace_dates
from oodbench_datasets.table.table import Table

ROWS = 60


def make_frame(**columns: Any) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    place = np.repeat(["a", "b"], ROWS // 2)
    frame = pd.DataFrame({"place": place, "size": rng.normal(5, 1, ROWS).round(3), "pay": rng.normal(size=ROWS)})
    return frame.assign(**columns)


def table(path: Path, **settings: Any) -> Table:
    usual = {"path": str(path), "target": "pay", "environment": "place", "train": "a"}
    return configure(Table, usual | settings, "dataset 'table'")


def same(one: Table, other: Table) -> bool:
    parts = [(getattr(one, part)(1), getattr(other, part)(1)) for part in ("train", "validation", "test")]
    return one.columns == other.columns and all(
        np.array_equal(a.x, b.x) and np.array_equal(a.y, b.y)
        for left, right in parts
        for a, b in zip(left, right, strict=True)
    )


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolon"), ("\t", "tab"), ("|", "pipe")])
def test_separators_are_found(tmp_path: Path, mark: str, name: str) -> None:
    make_frame().to_csv(tmp_path / "comma.csv", index=False)
    make_frame().to_csv(tmp_path / "other.csv", index=False, sep=mark)
    plain = table(tmp_path / "comma.csv")
    assert same(table(tmp_path / "other.csv"), plain)
    assert same(table(tmp_path / "other.csv", separator=name), plain)


def test_a_semicolon_file_with_decimal_commas(tmp_path: Path) -> None:
    make_frame().to_csv(tmp_path / "plain.csv", index=False)
    make_frame().to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    assert same(table(tmp_path / "comma.csv", decimal="comma"), table(tmp_path / "plain.csv"))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_markers_of_missing_values(tmp_path: Path, ending: str) -> None:
    """The numbers of a column with a marker are numbers, in a text file and in a Parquet file."""
    size = make_frame()["size"]
    gaps = np.arange(ROWS) % 7 == 1
    make_frame(size=size.mask(gaps)).to_csv(tmp_path / "plain.csv", index=False)
    for marker, marked in {"?": size.astype(str).mask(gaps, " ?"), "-999": size.mask(gaps, -999.0)}.items():
        frame = make_frame(size=marked)
        frame.to_csv(tmp_path / "t.csv", index=False)
        frame.to_parquet(tmp_path / "t.parquet")
        read = table(tmp_path / f"t.{ending}", missing=marker)
        assert read.columns == ("size", "size missing")
        assert same(read, table(tmp_path / "plain.csv"))
        assert read.warnings == []


def test_a_stray_text_far_below(tmp_path: Path) -> None:
    """Beyond the block by which a column is taken for numbers."""
    rows = 120_000
    frame = pd.DataFrame({"place": np.repeat(["a", "b"], rows // 2), "size": np.arange(rows) % 977, "pay": 1.5})
    frame["pay"] += np.arange(rows) % 13
    frame["other"] = frame["pay"] ** 2
    frame["size"] = frame["size"].astype(str).mask(frame.index == rows - 2, "?")
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert "text in 1, such as '?'" in table(tmp_path / "t.csv").warnings[0]
    assert table(tmp_path / "t.csv", missing="?").columns == ("size", "other")


@settings(deadline=None)
@given(
    st.lists(st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9).map(lambda value: round(value, 2)), min_size=1),
    st.sampled_from([("comma", "point"), ("point", "comma"), ("space", "comma"), ("apostrophe", "point")]),
)
def test_marks_in_numbers(values: list[float], marks: tuple[str, str]) -> None:
    import pyarrow as pa

    thousands, decimal = marks
    swap = str.maketrans({",": MARKS[thousands], ".": MARKS[decimal]})
    texts = [f"{value:,}".translate(swap) for value in values]
    data = pa.table({"x": pa.array([*texts, None]), "word": pa.array([*texts, "and"])})
    converted = convert_texts(data, (), thousands, decimal)
    assert converted.column("x").to_pylist() == [*map(float, values), None]
    assert converted.column("word").to_pylist() == [*texts, "and"]


def test_thousands_of_a_file(tmp_path: Path) -> None:
    price = np.round(make_frame()["size"] * 1000 + 0.25, 2)
    make_frame(size=price).to_csv(tmp_path / "plain.csv", index=False)
    make_frame(size=[f"{value:,}" for value in price]).to_csv(tmp_path / "t.csv", index=False)
    (warning,) = table(tmp_path / "t.csv").warnings
    assert warning.endswith("which are read as text. Set thousands=comma.")
    assert same(table(tmp_path / "t.csv", thousands="comma"), table(tmp_path / "plain.csv"))


@settings(deadline=None)
@given(st.lists(st.datetimes().map(lambda when: when.replace(microsecond=0)), min_size=1, max_size=20))
def test_parts_of_dates_against_datetime(dates: list[Any]) -> None:
    from datetime import datetime

    import pyarrow as pa

    texts = [f"{when:%H:%M:%S} {when.day}.{when.month}.{when.year:04}" for when in dates]
    for column in (pa.array([*texts, None]), pa.array([*dates, None], pa.timestamp("s"))):
        data, _ = replace_dates(pa.table({"x": column}), ["x"], PARTS, "%H:%M:%S %d.%m.%Y")
        assert data.column_names == ["x", "x year", "x month", "x day", "x weekday", "x hour"]
        days = [(when - datetime(1970, 1, 1)).total_seconds() / 86400 for when in dates]
        assert np.allclose(data.column("x").to_pylist()[:-1], days, rtol=0, atol=1e-9)
        rows = list(zip(*(data.column(name).to_pylist() for name in data.column_names[1:]), strict=True))
        assert rows == [
            *((when.year, f"{when.month:02}", when.day, str(when.isoweekday()), when.hour) for when in dates),
            (None,) * 5,
        ]


def test_dates_of_a_file(tmp_path: Path) -> None:
    days = pd.date_range("2019-12-25", periods=ROWS, freq="D")
    for number, texts in enumerate(
        (days.strftime("%d.%m.%Y"), days, days.strftime("%m/%d/%Y"), days.strftime("%Y%m%d"))
    ):
        make_frame(day=texts).to_csv(tmp_path / f"{number}.csv", index=False)
        data = table(tmp_path / f"{number}.csv", dates="day")
        assert data.columns[:2] == ("size", "day")
        assert data.columns[2:] == ("day month=01", "day month=12", *(f"day weekday={day}" for day in range(1, 8)))
    make_frame(day=days).to_parquet(tmp_path / "t.parquet")
    by_year = table(
        tmp_path / "t.parquet", dates="day", date_parts="year", environment="day year", train="2020", least_rows=2
    )
    assert [(one.name, len(one)) for one in by_year.test(0)] == [("2019", 7)]


BAD = [
    ({"dates": "two"}, "can be read in two ways, %m/%d/%Y and %d/%m/%Y"),
    ({"dates": "bad"}, "column 'bad' has '31.02.2010', and no known format"),
    ({"dates": "bad", "date_format": "%d.%m.%Y"}, "column 'bad' has '31.02.2010', which is no date of the format"),
    ({"dates": "size", "date_format": "%Q"}, "column 'size' has"),
    ({"dates": "daay"}, "there is no column 'daay'. Did you mean 'day'?"),
    ({"dates": "day", "drop": "day"}, "names a column twice, or one of drop"),
    ({"dates": "day", "date_parts": "year,century"}, "is wrong at 'century'"),
    ({"dates": "day", "date_parts": "month", "numeric": "day"}, "there is no column 'day'"),
    ({"dates": "day", "date_parts": "year"}, "there is a column 'day year' already"),
    ({"decimal": "comma", "thousands": "comma"}, "thousands and decimal are both comma"),
    ({"separator": "semicolon"}, "there is no column 'pay'"),
    ({"separator": ";"}, "separator=; is not one of auto, comma"),
    ({"numeric": "bad"}, "list it in missing if it stands for a missing value"),
]


@pytest.mark.parametrize(("settings", "expected"), BAD)
def test_mistakes_are_told_in_two_lines(tmp_path: Path, settings: dict[str, str], expected: str) -> None:
    columns: dict[str, Any] = {"day": "2020-01-01", "bad": ["31.02.2010", *["1.1.2010"] * (ROWS - 1)]}
    make_frame(two="01/02/2020", **columns, **{"day year": 1}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(UserError) as caught:
        _ = table(tmp_path / "t.csv", **({"drop": "day"} if "dates" not in settings else {}) | settings).task
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2


def test_a_line_that_ends_in_separators_and_a_part_of_a_date_that_makes_environments(tmp_path: Path) -> None:
    """As UCI's air quality comes: two columns without a name, and years that only the dates have."""
    lines = [f"{day:02}/03/{year};{day};{day % 3};;" for year in (2004, 2005) for day in range(1, 29)]
    (tmp_path / "air.csv").write_text("\n".join(["Date;CO;T;;", *lines]) + "\n")
    how = {"target": "CO", "environment": "Date year", "train": "2004", "dates": "Date", "date_parts": "number"}
    made = table(tmp_path / "air.csv", **how)
    assert [environment.name for environment in made.test(0)] == ["2005"]
    assert made.columns is not None
    assert {name.split("=")[0] for name in made.columns} == {"Date", "T"}
