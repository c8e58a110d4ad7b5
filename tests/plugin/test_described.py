"""Datasets that a TOML file describes: written by `oodbench new`, shown, run and seen again by the name of the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oodbench.errors import UserError
from oodbench.plugin.described import find_dataset, write_description
from oodbench.settings.fields import configure
from oodbench.study.plan import Request, dataset_id_of, resolve
from oodbench_datasets.table.table import EXAMPLE, Table

Cli = Callable[..., Any]

SETTINGS = {"target": "late", "environment": "region", "train": "north,south"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/trips.csv").write_bytes(EXAMPLE.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_description_is_the_dataset_with_its_settings(folder: Path) -> None:
    path = write_description("table", "data/trips.csv", SETTINGS | {"rare": "0.2"}, Path("boards"))
    assert path == Path("boards/trips.toml")
    assert path.read_text().splitlines()[1:] == [
        'dataset = "table"', "", "[settings]", 'path = "../data/trips.csv"', 'target = "late"',
        'environment = ["region"]', 'train = ["north", "south"]', "rare = 0.2",
    ]  # fmt: skip
    name, cls = find_dataset("boards/trips.toml")
    assert name == "trips"
    plain = configure(Table, SETTINGS | {"path": "data/trips.csv", "rare": 0.2}, "table")
    for part in ("train", "validation", "test"):
        for one, other in zip(getattr(cls(), part)(4), getattr(plain, part)(4), strict=True):
            assert np.array_equal(one.x, other.x)
            assert np.array_equal(one.y, other.y)
    assert dataset_id_of("boards/trips.toml", {}) == "trips"
    assert dataset_id_of("boards/trips.toml", {"test_rows": "20"}) == "trips test_rows=20"
    (spec,) = resolve(Request(["erm"], ["boards/trips.toml"]))
    assert spec.dataset_name == "trips"


def test_new_and_show_on_the_command_line(cli: Cli, folder: Path) -> None:
    options = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    written = cli("new", "table", "data/trips.csv", *options)
    assert written.code == 0, written.err
    assert "oodbench run -m erm -d trips.toml" in written.out
    shown = cli("show", "trips.toml", "--json").json()
    assert (shown["name"], shown["task"]) == ("trips", "classification")
    assert [row["environment"] for row in shown["environments"]] == ["north", "south", "east", "west"]
    again = cli("new", "table", "data/trips.csv")
    assert again.code == 2
    assert "trips.toml exists already" in again.err
    assert cli("new", "method", "mine", "--set", "a=b").code == 2
    assert cli("new", "table", "data/trips.csv", "--kind", "loss").code == 2


def test_a_run_and_its_board_have_the_name_of_the_description(cli: Cli, ray_address: str, folder: Path) -> None:
    lines = Path("data/trips.csv").read_text().splitlines()
    numbered = [f"{lines[0]},id", *(f"{line},{number}" for number, line in enumerate(lines[1:]))]
    Path("data/trips.csv").write_text("\n".join(numbered) + "\n")
    write_description("table", "data/trips.csv", SETTINGS, Path())
    budget = ["--trials", "1", "--seeds", "1", "--set-training", "steps=20", "--address", ray_address]
    done = cli("run", "-m", "erm", "-d", "trips.toml", *budget, "--json")
    assert done.code == 0, done.err
    assert "column 'id' counts the rows" in done.err
    assert [board["dataset_id"] for board in done.json()] == ["trips"]
    seen = cli("leaderboard", "trips.toml", "--format", "json")
    assert seen.code == 0, seen.err
    assert '"trips"' in seen.out


def test_without_settings_it_asks_for_them(cli: Cli, folder: Path) -> None:
    assert cli("new", "table", "data/trips.csv").code == 0
    shown = cli("show", "trips.toml")
    assert shown.code == 2
    assert "dataset 'table' needs target, environment, train" in shown.err


BAD = [
    ('dataset = "table"\nsetings = 1', "there is no key 'setings'. Did you mean 'settings'?"),
    ('dataset = "table"\n[settings]\ntargt = "x"', "trips.toml: dataset 'table' has no setting 'targt'"),
    ('dataset = "table"\n[settings]\nrare = "much"', "rare=much is not a number"),
    ('dataset = "table"\n[settings]\nwhere = 2020-01-01', "where must be a text, a number"),
    ('dataset = "table"\n[settings.where]\nage = 3', "where must be a text, a number"),
    ('dataset = "tabel"', "there is no dataset (in trips.toml) 'tabel'. Did you mean 'table'?"),
    ("dataset = 3", "is not the description of a dataset"),
    ("dataset = ", "dataset trips.toml is not valid TOML"),
    ("[settings]", "is not the description of a dataset"),
]


@pytest.mark.parametrize(("text", "expected"), BAD)
def test_mistakes_are_told_in_two_lines(folder: Path, text: str, expected: str) -> None:
    Path("trips.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        find_dataset("trips.toml")
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2


def test_names_that_would_be_mistaken(folder: Path) -> None:
    for path in ("table.toml", "a/trips.toml", "b/trips.toml"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text('dataset = "table"\n')
    with pytest.raises(UserError, match="has the name of an installed dataset"):
        find_dataset("table.toml")
    with pytest.raises(UserError, match="have the same name"):
        resolve(Request(["erm"], ["a/trips.toml", "b/trips.toml"]))
    with pytest.raises(UserError, match="cannot be read: No such file"):
        find_dataset("none.toml")
    with pytest.raises(UserError, match="reads no file of yours"):
        write_description("selection_bias", "x.csv", {}, Path())
