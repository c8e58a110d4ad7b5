"""Several files as one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from oodbench.errors import UserError
from oodbench.settings.fields import configure
from oodbench_datasets.table.table import Table

ROWS = 40


def make_frame(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    job, n = rng.choice(["cook", "smith"], ROWS), rng.integers(0, 99, ROWS)
    return pd.DataFrame({"x": rng.normal(size=ROWS), "job": job, "n": n, "y": rng.normal(size=ROWS)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_frame(1).to_csv(tmp_path / "2013.csv", index=False)
    make_frame(2).to_csv(tmp_path / "2014.csv.gz", index=False)
    make_frame(3)[["job", "y", "n", "x"]].to_parquet(tmp_path / "2015.parquet")
    make_frame(4).assign(n=make_frame(4)["n"] + 0.5).to_csv(tmp_path / "2016.tsv", index=False, sep="\t")
    (tmp_path / "notes.txt").write_text("no table")
    return tmp_path


def table(path: Path, **settings: Any) -> Table:
    usual = {"path": str(path), "target": "y", "environment": "file", "train": "2013,2014"}
    return configure(Table, usual | settings, "dataset 'table'")


def test_a_folder_is_read_as_one_table(folder: Path, tmp_path: Path) -> None:
    data = table(folder)
    assert [one.name for one in data.test(0)] == ["2015", "2016"]
    frames = [make_frame(1), make_frame(2), make_frame(3), make_frame(4).assign(n=make_frame(4)["n"] + 0.5)]
    one = pd.concat([frame.assign(file=2013 + place) for place, frame in enumerate(frames)])
    (tmp_path / "whole").mkdir()
    one.to_csv(tmp_path / "whole" / "one.csv", index=False)
    plain = table(tmp_path / "whole" / "one.csv")
    assert data.columns == plain.columns == ("x", "job=cook", "job=smith", "n")
    for part in ("train", "validation", "test"):
        for first, second in zip(getattr(data, part)(3), getattr(plain, part)(3), strict=True):
            assert np.array_equal(first.x, second.x)
            assert np.array_equal(first.y, second.y)
    assert [row["rows"] for row in data.describe_data()["files"]] == [ROWS] * 4


def test_a_pattern_chooses_files(folder: Path) -> None:
    data = table(folder / "201[34].csv*", train="2013", drop="job")
    assert [one.name for one in data.test(0)] == ["2014"]
    by_column = table(folder / "*.csv*", environment="job", train="cook")
    assert by_column.columns == ("x", "n")


def test_every_file_is_in_the_hash(folder: Path) -> None:
    before = table(folder).file_hash
    make_frame(9).to_csv(folder / "2013.csv", index=False)
    assert table(folder).file_hash != before


def test_text_in_one_file_is_warned_of(folder: Path) -> None:
    frame = make_frame(1).astype({"n": str})
    frame.loc[3, "n"] = "?"
    frame.to_csv(folder / "2013.csv", index=False)
    (warning,) = table(folder / "*.csv*", train="2014", rare=0).warnings
    assert "text in 1, such as '?'" in warning
    assert "n" in table(folder / "*.csv*", train="2014", missing="?").columns


def test_files_must_have_the_same_columns(folder: Path) -> None:
    make_frame(1).drop(columns="n").to_csv(folder / "2017.csv", index=False)
    with pytest.raises(UserError, match=r"2013.csv has a column 'n', and .*2017.csv has not") as caught:
        _ = table(folder).task
    assert len(str(caught.value).splitlines()) == 2
    with pytest.raises(UserError, match="there is no column 'file'"):
        _ = table(folder / "2013.csv").task
    (folder / "empty").mkdir()
    with pytest.raises(UserError, match="has no table"):
        _ = table(folder / "empty").task
