"""Encoders: raw values of any type are read alike, what cannot be read is refused, a file gives the same encoder."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodbench.encoder import Encoder, Indicators, Lookup, Marked, RawColumn, Scaled
from oodbench.encoder.encoder import SCHEMA
from oodbench.encoder.reading import Marks
from oodbench.errors import OodbenchError, UserError
from oodbench.plugin.dataset import Dataset, fault_in_encoder
from oodbench.plugin.rows_file import read_rows
from oodbench.settings.fields import configure
from oodbench.study.document import read_document, write_document
from oodbench_datasets.acs.datasets import AcsTravel
from oodbench_datasets.selection_bias import SelectionBias
from oodbench_datasets.table.table import Table

PARTS = ("number", "month")
ENCODER = Encoder(
    raw=(
        RawColumn("size", "number"),
        RawColumn("stars", "code"),
        RawColumn("color", "text"),
        RawColumn("open", "truth"),
        RawColumn("grade", "rank", order=("low", "mid", "top")),
        RawColumn("day", "date", format="%d.%m.%Y", parts=PARTS),
    ),
    steps=(
        Scaled("scaled", "size", ("size",), 2.0, 1.0, 4.0),
        Marked("marked", "size", ("size missing",), 0.0, 1.0),
        Indicators("indicators", "stars", ("stars=1", "stars=2", "stars missing"), ("1", "2"), -1, 2, (True,) * 3),
        Lookup("lookup", "color", ("color share",), ("red", "tan"), ((0.25,), (0.5,)), (0.0,), (-1.0,)),
        Indicators("indicators", "open", ("open=false", "open=true"), ("false", "true"), -1, -1, (True, True)),
        Scaled("scaled", "grade", ("grade",), 0.0, 0.0, 1.0),
        Scaled("scaled", "day", ("day",), 0.0, 0.0, 1.0),
        Indicators("indicators", "day month", ("day month=02",), ("02",), -1, -1, (True,)),
    ),
    classes=("no", "yes"),
    marks=Marks(missing=("?", "-9"), thousands="comma"),
)
ROWS = {
    "size": [5.0, None, 1000.0],
    "stars": [1, 2, None],
    "color": ["tan", None, "black"],
    "open": [True, False, None],
    "grade": ["top", None, "low"],
    "day": ["01.02.1970", "02.01.1970", None],
}
EXPECTED = np.array(
    [
        [1.0, 0, 1, 0, 0, 0.5, 0, 1, 2, 31, 1],
        [0.25, 1, 0, 1, 0, -1, 1, 0, 0, 1, 0],
        [249.75, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    ]
)
RETYPED: dict[str, list[Any]] = {
    "size": ["5.0", "?", "1,000"],
    "stars": ["1", "2.0", "?"],
    "open": ["True", "no", "?"],
    "day": [datetime(1970, 2, 1), datetime(1970, 1, 2), None],
}


def test_features_of_raw_rows() -> None:
    for rows in (pd.DataFrame(ROWS), pa.table(ROWS), pd.DataFrame(ROWS).astype({"color": "category"})):
        np.testing.assert_array_equal(ENCODER.encode_rows(rows), EXPECTED)
    np.testing.assert_array_equal(ENCODER.encode_rows(pd.DataFrame(ROWS).iloc[[2, 0]]), EXPECTED[[2, 0]])
    assert ENCODER.count_strangers(ENCODER.read(pd.DataFrame(ROWS))) == {"color": 1, "day month": 1}
    assert ENCODER.encode_rows(pd.DataFrame(ROWS).iloc[:0]).shape == (0, 11)


@pytest.mark.parametrize("column", [*RETYPED, "size as whole numbers", "stars as true", "marker"])
def test_retyped_columns_are_read_alike(column: str) -> None:
    frame, expected = pd.DataFrame(ROWS), EXPECTED
    if column in RETYPED:
        frame[column] = RETYPED[column]
    elif column == "size as whole numbers":
        frame = frame.iloc[[0]].assign(size=5)
        expected = EXPECTED[[0]]
    elif column == "stars as true":  # as a file with 1 alone might be read
        frame = frame.iloc[[0]].assign(stars=True)
        expected = EXPECTED[[0]]
    else:
        frame["size"] = [5, -9, 1000]
    np.testing.assert_array_equal(ENCODER.encode_rows(frame), expected)


def test_a_file_gives_what_a_frame_gives(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS).assign(more="x")[["more", "day", "grade", "open", "color", "stars", "size"]]
    frame.to_csv(tmp_path / "new.csv", index=False)
    frame.to_csv(tmp_path / "semicolons.csv", index=False, sep=";")
    frame.to_csv(tmp_path / "new.tsv.gz", index=False, sep="\t")
    frame.to_parquet(tmp_path / "new.parquet")
    for path in tmp_path.iterdir():
        table = read_rows(path, [raw.name for raw in ENCODER.raw])
        np.testing.assert_array_equal(ENCODER.encode_rows(table), EXPECTED)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"size": None}, "there is no column 'size'"),
    ({"size": [1, "much", 2]}, "column 'size' has 'much' in row 2, which is not a number"),
    ({"size": [1, 2, np.inf]}, "column 'size' has an infinite value in row 3"),
    ({"stars": ["1", "one", "2"]}, "column 'stars' has 'one' in row 2, which is not a number"),
    ({"open": ["yes", "maybe", "no"]}, "column 'open' has 'maybe' in row 2, which is not true or false"),
    ({"grade": ["low", "great", "top"]}, "column 'grade' has 'great' in row 2, which is not one of low, mid, top"),
    ({"day": ["01.02.1970", "1970-02-01", None]}, "column 'day' has '1970-02-01' in row 2, which is not a date of the"),
    ({"size": [datetime(2020, 1, 1)] * 3}, "column 'size' holds timestamp[us] values, and the model takes numbers"),
]


@pytest.mark.parametrize(("values", "expected"), BAD)
def test_what_cannot_be_read_is_refused_in_two_lines(values: dict[str, Any], expected: str) -> None:
    frame = pd.DataFrame(ROWS)
    for name, column in values.items():
        frame = frame.drop(columns=name) if column is None else frame.assign(**{name: column})
    with pytest.raises(UserError) as caught:
        ENCODER.encode_rows(frame)
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2


def test_a_column_with_another_spelling_is_suggested_and_doubles_are_refused() -> None:
    with pytest.raises(UserError, match="Did you mean 'sizes'"):
        ENCODER.encode_rows(pd.DataFrame(ROWS).rename(columns={"size": "sizes"}))
    frame = pd.DataFrame(ROWS)
    with pytest.raises(UserError, match="two columns 'size'"):
        ENCODER.encode_rows(pd.concat([frame, frame[["size"]]], axis=1))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes("size\nn\xe4h\n".encode("latin-1"))
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "rows.xlsx").write_text("")
    (tmp_path / "other.csv").write_text("sizes\n1\n")
    for name in ("latin.csv", "cut.parquet", "empty.csv", "rows.xlsx", "none.csv", "other.csv", "."):
        with pytest.raises(OodbenchError) as caught:
            read_rows(tmp_path / name, ["size"])
        assert len(str(caught.value).splitlines()) == 2


NUMBERS = st.none() | st.floats(-1e9, 1e9) | st.integers(-(10**6), 10**6)


@given(st.lists(NUMBERS, min_size=1), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_numbers_as_text_are_the_same_numbers(values: list[float | None], center: float, scale: float) -> None:
    step = Scaled("scaled", "x", ("x",), 0.0, center, scale)
    encoder = Encoder((RawColumn("x", "number"),), (step,))
    numbers = pd.DataFrame({"x": pd.array([np.nan if value is None else value for value in values], dtype=float)})
    texts = pd.DataFrame({"x": [None if value is None else repr(value) for value in values]})
    np.testing.assert_array_equal(encoder.encode_rows(numbers), encoder.encode_rows(texts))


CENSUS = {"data": "synthetic", "train_rows": 100, "validation_rows": 50, "target": "VT", "encoding": "categories"}


@pytest.mark.parametrize(("cls", "settings"), [(Table, Table.tiny), (AcsTravel, CENSUS)])
def test_a_document_gives_the_same_encoder(cls: type[Dataset], settings: dict[str, Any]) -> None:
    data = configure(cls, settings, "dataset")
    for seed in (0, 1):
        encoder = data.encoder(seed)
        assert encoder is not None
        assert fault_in_encoder(encoder, data) is None
        assert read_document(Encoder, write_document(encoder), SCHEMA) == encoder
    assert data.encoder(0) != data.encoder(1)


def test_a_dataset_of_features_has_none() -> None:
    assert SelectionBias().encoder(0) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": ()},
        {"raw": ENCODER.raw[1:]},
        {"raw": (RawColumn("size", "text"), *ENCODER.raw[1:])},
        {"scale": float("nan")},
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="."):
        Encoder(**{"raw": ENCODER.raw, "steps": ENCODER.steps, **changes})


def test_plain_numbers_have_no_gaps() -> None:
    encoder = Encoder.plain(["a", "b"], ["0", "1"])
    np.testing.assert_array_equal(encoder.encode_rows(pd.DataFrame({"b": [3], "a": ["2"]})), [[2.0, 3.0]])
    with pytest.raises(UserError, match="column 'b' has no value in row 2, and the model needs one"):
        encoder.encode_rows(pd.DataFrame({"b": [3, None], "a": [1, 2]}))
