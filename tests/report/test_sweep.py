"""What was tried and chosen beside a board, its validation error, and labels of scaled errors."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import oodbench
from oodbench.board.cells import read_cells
from oodbench.board.leaderboard import compile_leaderboard
from oodbench.report.cost import draw_cost, draw_search
from oodbench.report.drawing import style
from oodbench.report.figures import draw_distribution, gather
from oodbench.report.folder import write_boards
from oodbench.report.formats import render
from oodbench.report.page_data import looks_on
from oodbench.report.sweep import sweep_files
from pages import study
from studies import changed, failed

TRIALS = 4


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_every_configuration_is_there_in_one_order() -> None:
    one, other = study("irm", 0.3, ["a", "b"], 5, TRIALS), study("erm", 0.2, ["a", "b"], 5, TRIALS)
    tried = [{"penalty": 10.0**trial, "steps": "few"} for trial in range(TRIALS)]
    one = changed(one, configurations=tuple(tried))
    repeat = changed(one, study_id="again", repeat_of=one.record.study_id, budget__repeat=1)
    board = compile_leaderboard("data", [one, repeat, other])
    files = sweep_files("board", [board])
    assert list(files) == ["board_chosen.csv", "board_sweep.csv"]
    assert files == sweep_files("board", [compile_leaderboard("data", [other, repeat, one])])
    sweep = rows_of(files["board_sweep.csv"])
    assert [(row["method"], row["search"], row["configuration"]) for row in sweep] == [
        (method, search, str(index))
        for method, search in (("erm", "1"), ("irm", "1"), ("irm", "2"))
        for index in range(TRIALS)
    ]
    assert [row["hp.penalty"] for row in sweep if row["method"] == "irm"][:TRIALS] == ["1.0", "10.0", "100.0", "1000.0"]
    assert one.record.choice is not None
    assert one.results is not None
    validation = one.results[one.results["part"] == "validation"]
    for index, row in enumerate(sweep[TRIALS : 2 * TRIALS]):
        of_it = validation[validation["configuration"] == index]["error"]
        assert float(row["validation_mean_error"]) == pytest.approx(of_it.mean())
        assert float(row["score"]) == one.record.choice.scores[index]
        assert row["chosen"] == str(index == one.record.choice.configuration)
    chosen = rows_of(files["board_chosen.csv"])
    assert [(row["method"], row["configuration"]) for row in chosen] == [("erm", "3"), ("irm", "3"), ("irm", "3")]


def test_a_study_that_failed_shows_what_it_tried() -> None:
    board = compile_leaderboard("data", [failed(study("erm", 0.2, ["a"], 2, TRIALS), "it diverged")])
    files = sweep_files("board", [board])
    assert len(rows_of(files["board_sweep.csv"])) == TRIALS
    assert rows_of(files["board_chosen.csv"]) == []


def test_a_board_shows_the_validation_error_beside_the_test_error() -> None:
    one = study("erm", 0.2, ["a", "b"], 5, TRIALS)
    board = compile_leaderboard("data", [one])
    assert one.results is not None
    rows = one.results[one.results["chosen"] & (one.results["part"] == "validation")]
    assert board.rows[0].validation.value == pytest.approx(rows["error"].mean())
    assert board.frame()["validation_error"].iloc[0] == pytest.approx(rows["error"].mean())
    assert "validation error" in render(board, "md")
    assert board.as_dict()["rows"][0]["validation_error"]["value"] == pytest.approx(rows["error"].mean())


def test_errors_of_a_scaled_target_are_labelled_in_tables_and_on_axes() -> None:
    own = study("erm", 0.2, ["a", "b"], 5, TRIALS, "regression")
    scaled = changed(own, data__scaled=True)
    for one, label in ((own, ""), (scaled, " (scaled)")):
        board = compile_leaderboard("data", [one], metrics=["mean_error", "mean_rmse", "mean_r2"])
        head = next(line for line in render(board, "md").splitlines() if line.startswith("| method"))
        assert f"| mean error{label} |" in head
        assert f"| mean RMSE{label} |" in head
        assert "| mean R² |" in head
        assert f"| validation error{label} |" in head
        assert f"Mean error{label} " in render(board, "latex")
        with style():
            drawn = draw_cost(board, looks_on(board), "seconds"), draw_search([one], looks_on(board))
            shown = draw_distribution(gather("data", [one]))
        for figure in drawn:
            assert figure is not None
            assert figure.axes[0].get_ylabel().endswith(label)
        assert shown.axes[0].get_xlabel() == f"test error (MSE{', scaled' if label else ''})"
    assert board.as_dict()["errors_scaled"] is True


def test_rows_that_were_left_out_are_counted_on_the_board() -> None:
    counts = {"no target": 1200, "in no range of bins": 3}
    board = compile_leaderboard("data", [changed(study("erm", 0.2, ["a"], 2, 2), data__left_out=counts)])
    said = "rows left out: 1,203 (1,200 no target, 3 in no range of bins)"
    assert said in render(board, "md")


def test_a_board_as_a_folder(tmp_path: Path) -> None:
    boards = [compile_leaderboard(name, [study("erm", 0.2, ["a", "b"], 5, TRIALS)]) for name in ("one", "two")]
    written = write_boards(boards, tmp_path)
    assert [path.name for path in written] == [
        "board.md", "board.csv", "board_cells.csv", "board_chosen.csv", "board_sweep.csv", "index.html",
    ]  # fmt: skip
    assert {row["dataset_id"] for row in rows_of((tmp_path / "board.csv").read_text())} == {"one", "two"}
    assert len(read_cells([tmp_path / "board_cells.csv"])) == 2
    page = oodbench.write_page(boards, tmp_path / "page")
    assert '<a href="board_sweep.csv">' in page.read_text()
    assert (page.parent / "board_sweep.csv").read_bytes() == (tmp_path / "board_sweep.csv").read_bytes()
