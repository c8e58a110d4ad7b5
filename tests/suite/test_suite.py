"""Suites that are run: one search, and the boards and files it comes to."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import oodbench
from oodbench.driver.progress import Progress
from oodbench.errors import Notice
from oodbench.study.study import Study
from places import SUITE

Cli = Callable[..., Any]
Write = Callable[..., Path]


class Counts(Progress):
    """How many studies and trainings a run has."""

    studies = trainings = finished = 0

    def plan(self, studies: Sequence[Study], record: str) -> None:
        self.studies = len(studies)

    def advance(self, study: Study, trainings: int, failed: int) -> None:
        self.trainings += trainings

    def finish(self) -> None:
        self.finished += 1


@pytest.fixture(scope="module")
def short(
    ray_address: str, tmp_path_factory: pytest.TempPathFactory, write_suite: Write
) -> tuple[Path, oodbench.SuiteResult]:
    folder = tmp_path_factory.mktemp("suite")
    path = write_suite(folder)
    counts = Counts()
    result = oodbench.run_suite(str(path), mode="short", directory=folder / "record", progress=counts)
    assert (counts.studies, counts.trainings, counts.finished) == (6, 2 * (2 * 1 + 2 * 2 + 2), 1)
    return path, result


def test_a_suite_is_one_page_with_every_board(short: tuple[Path, oodbench.SuiteResult], tmp_path: Path) -> None:
    path, result = short
    page = result.write_page(tmp_path / "once").read_text()
    assert page.count('class="board"') == 3
    assert "fdro, alpha0=0.5: train accuracy" in page
    assert "true share" in page
    where: dict[str, Any] = {"mode": "short", "directory": result.record.directory}
    again = oodbench.suite_leaderboards(str(path), **where).write_page(tmp_path / "again")
    assert again.read_text() == page


def test_boards_have_the_suites_order_labels_and_published_figures(short: tuple[Path, oodbench.SuiteResult]) -> None:
    regression, curve = short[1].boards
    assert [board.dataset_id for board in regression.leaderboards] == [
        f"selection_bias r1={r1} majority=60 minority=20 test_rows=20" for r1 in (1.5, 1.9)
    ]
    for board in regression.leaderboards:
        assert [row.label for row in board.rows] == ["erm (short)", "irm (short)"]
        assert [(row.trials, row.seeds) for row in board.rows] == [(1, 2), (2, 2)]
        assert board.metrics == ("mean_error", "std_error", "max_error")
    wide, narrow = (board.rows[0].cells["mean_error"] for board in regression.leaderboards)
    assert (wide.within, narrow.within) == (True, False)
    assert [(point.method, point.at) for point in curve.points] == [("fdro", 0.1), ("fdro", 0.5)]
    assert all(set(point.cells) == {"train_accuracy", "mean_accuracy"} for point in curve.points)
    assert all(point.cells["train_accuracy"].value is not None for point in curve.points)


def test_the_record_keeps_the_details_that_the_label_leaves_out(short: tuple[Path, oodbench.SuiteResult]) -> None:
    _, result = short
    study = next(study for part, study in result.parts if part.method == "irm")
    (record,) = result.record.records_of([study])
    run = result.record.client.get_run(record.run_id)
    assert run.data.tags["oodbench.label"] == "irm (short)"
    assert (run.data.params["fixed.penalty"], run.data.params["recipe.steps"]) == ("1,5", "30")


def test_files_are_written_and_the_same_record_gives_the_same_bytes(
    cli: Cli, short: tuple[Path, oodbench.SuiteResult], tmp_path: Path
) -> None:
    path, result = short
    written = result.write(tmp_path / "one")
    drawn = ["regression/1/distribution.svg", "regression/2/distribution.svg"]
    tables = (".md", ".csv", "_cells.csv", "_chosen.csv", "_sweep.csv")
    names = [*(f"regression{ending}" for ending in (*tables, ".tex")), *drawn]
    names += [*(f"curve{ending}" for ending in (*tables, ".svg")), "page/index.html", "README.md"]
    assert [file.relative_to(tmp_path / "one").as_posix() for file in written] == names
    same = cli("compare", str(tmp_path / "one"), str(tmp_path / "one"), "--json")
    assert same.code == 0, same.err
    compared = [(row["dataset_id"], row["method"], row["verdict"]) for row in same.json()["rows"]]
    assert len(compared) == 6
    assert {verdict for _, _, verdict in compared} == {"identical"}
    again = oodbench.suite_leaderboards(str(path), mode="short", directory=path.parent / "record")
    again.write(tmp_path / "two")
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    texts = {name: (tmp_path / "one" / name).read_text() for name in names}
    assert all(f"]({figure})" in texts["regression.md"] for figure in drawn)
    assert "| 0.500 ± 1000.000 ✓ |" in texts["regression.md"]
    assert "| 0.500 ± 0.000 ✗ |" in texts["regression.md"]
    rows = list(csv.DictReader(texts["regression.csv"].splitlines()))
    assert [row["mean_error_within_published"] for row in rows if row["method"] != "constant"] == [
        "True",
        "",
        "False",
        "",
    ]
    assert [row["method"] for row in rows].count("constant") == 2  # one a board
    tried = list(csv.DictReader(texts["regression_sweep.csv"].splitlines()))
    assert {(row["dataset_id"], row["method"]) for row in tried} == {
        (row["dataset_id"], row["method"]) for row in rows if row["method"] != "constant"
    }
    assert len(list(csv.DictReader(texts["regression_chosen.csv"].splitlines()))) == 4
    assert 'href="../regression_sweep.csv"' in texts["page/index.html"]
    points = list(csv.DictReader(texts["curve.csv"].splitlines()))
    assert [(point["method"], point["alpha0"]) for point in points] == [("fdro", "0.1"), ("fdro", "0.5")]
    assert texts["curve.svg"].startswith("<?xml")
    assert "dc:date" not in texts["curve.svg"]
    made = result.boards[0].studies[0].record.provenance
    assert made.day in texts["README.md"]
    assert f"torch {made.versions['torch']}" in texts["README.md"]
    assert f"oodbench leaderboard --suite {path} --mode short --output FOLDER" in texts["README.md"]


def test_a_finished_suite_trains_nothing_again_and_a_larger_one_only_what_is_new(
    short: tuple[Path, oodbench.SuiteResult], tmp_path: Path, write_suite: Write
) -> None:
    path, result = short
    record = path.parent / "record"
    counts = Counts()
    again = oodbench.run_suite(str(path), mode="short", directory=record, progress=counts)
    assert (counts.studies, counts.trainings) == (6, 0)
    assert again.as_dict() == result.as_dict()
    larger = write_suite(tmp_path, SUITE.replace("values = [0.1, 0.5]", "values = [0.1, 0.3, 0.5]"))
    oodbench.run_suite(str(larger), mode="short", directory=record, progress=counts)
    assert (counts.studies, counts.trainings) == (7, 2)


def test_studies_that_boards_have_in_common_are_run_once(
    short: tuple[Path, oodbench.SuiteResult], tmp_path: Path, write_suite: Write
) -> None:
    board = SUITE[SUITE.index("[[boards]]") : SUITE.index('[[boards]]\nname = "curve"')].replace("regression", "twin")
    path = write_suite(tmp_path, SUITE.replace("[modes.usual]", f"{board}[modes.usual]"))
    counts = Counts()
    result = oodbench.run_suite(
        str(path), methods=["erm"], seeds=1, trials=1, directory=short[0].parent / "record", progress=counts
    )
    assert (counts.studies, counts.trainings) == (2, 2)
    first, twin = ([row.label for row in board.leaderboards[0].rows] for board in result.boards)
    assert first == twin == ["erm"]


def test_studies_that_are_missing_are_shown_as_such(
    short: tuple[Path, oodbench.SuiteResult], tmp_path: Path, write_suite: Write
) -> None:
    path, _ = short
    larger = write_suite(tmp_path, SUITE.replace("values = [0.1, 0.5]", "values = [0.1, 0.2, 0.5]"))
    result = oodbench.suite_leaderboards(str(larger), mode="short", directory=path.parent / "record")
    curve = result.boards[1]
    assert [row.failure for row in curve.leaderboards[0].rows] == ["", "not run", ""]
    assert [point.cells["mean_accuracy"].value is None for point in curve.points] == [False, True, False]
    result.write(tmp_path / "out")
    assert "fdro (short, alpha0=0.2): not run" in (tmp_path / "out" / "curve.md").read_text()
    assert "| 2 of 3 |" in (tmp_path / "out" / "README.md").read_text()


def test_studies_that_cannot_be_read_are_not_said_to_be_not_run(short: tuple[Path, oodbench.SuiteResult]) -> None:
    path, _ = short
    directory = path.parent / "record"
    shown = oodbench.suite_leaderboards(str(path), mode="short", directory=directory).boards
    runs = [study.run_id for study in shown[1].studies]
    files = {run_id: directory / "artifacts" / run_id / "artifacts" / "study.json" for run_id in runs}
    whole = {file: file.read_bytes() for file in files.values()}
    try:
        for file in whole:
            file.write_text("{")
        with pytest.warns(Notice) as warned:
            boards = oodbench.suite_leaderboards(str(path), mode="short", directory=directory).boards
    finally:
        for file, content in whole.items():
            file.write_bytes(content)
    assert boards[0].leaderboards[0].rows == shown[0].leaderboards[0].rows
    failures = [row.failure for row in boards[1].leaderboards[0].rows]
    assert failures
    assert all(text.startswith("unreadable: run ") and "is damaged: study.json" in text for text in failures)
    assert {str(each.message)[:14] for each in warned} == {"left out: run "}
    assert len(warned) == len(runs)


def test_a_suite_of_ones_own_through_the_command_line(
    cli: Cli, tmp_path: Path, suite_file: Path, ray_address: str
) -> None:
    command = ["--suite", "./mine.toml", "--mode", "short", "-m", "erm", "-m", "fdro", "--seeds", "1"]
    done = cli("run", *command, "--address", ray_address, "-o", "boards")
    assert done.code == 0, done.err
    assert "4 trainings in " in done.err
    assert " in total" in done.err
    assert "wrote 16 files" in done.err
    assert "A curve" in done.out
    board = cli("leaderboard", *command, "-o", "again")
    assert board.out == done.out
    written = [path.relative_to(tmp_path / "boards") for path in (tmp_path / "boards").rglob("*") if path.is_file()]
    assert len(written) == 16
    for file in written:
        assert (tmp_path / "boards" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
    told = cli("leaderboard", *command, "--json").json()
    assert [board["name"] for board in told["boards"]] == ["regression", "curve"]
    assert told["boards"][0]["leaderboards"][0]["rows"][0]["metrics"]["mean_error"]["published"]["within"] is True
