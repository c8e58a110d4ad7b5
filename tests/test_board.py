from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from oodbench.board import compile_leaderboard
from oodbench.report.tables import notes, render
from oodbench.statistics import differ
from oodbench.tracking import StudyRecord


def record(label: str, errors: list[float] | None, failed: int = 0, reason: str = "") -> StudyRecord:
    results = None
    if errors is not None:
        results = pd.DataFrame(
            [
                (seed, "test", name, error + shift)
                for seed, error in enumerate(errors)
                for name, shift in (("a", -0.1), ("b", 0.1))
            ],
            columns=["seed", "part", "environment", "error"],
        ).assign(chosen=True, configuration=0)
    status = "FINISHED" if results is not None else "FAILED"
    return StudyRecord("run", "id", label, "regression", status, reason, 20, 10, failed, "f", "", results)


RNG = np.random.default_rng(0)
NOISE = RNG.normal(0, 0.1, 10)


def test_a_clear_winner_is_marked_best() -> None:
    board = compile_leaderboard("data", [record("a", list(1 + NOISE)), record("b", list(2 + RNG.normal(0, 0.1, 10)))])
    assert [row.label for row in board.rows] == ["a", "b"]
    assert [row.cells["mean_error"].mark for row in board.rows] == ["best", ""]
    assert "| a | **1." in render(board, "md")


def test_ties_within_noise_are_not_wins() -> None:
    close = [
        record("a", list(1 + NOISE)),
        record("b", list(1.01 + RNG.normal(0, 0.1, 10))),
        record("c", list(3 + NOISE)),
    ]
    board = compile_leaderboard("data", close)
    assert [row.cells["mean_error"].mark for row in board.rows] == ["tied", "tied", ""]
    assert "**1" not in render(board, "md")
    assert "≈ 1." in render(board, "md")


def test_a_method_alone_beats_nobody() -> None:
    assert compile_leaderboard("data", [record("a", [1.0, 1.1])]).rows[0].cells["mean_error"].mark == ""


def test_failed_and_missing_studies_are_shown() -> None:
    board = compile_leaderboard(
        "data", [record("a", [1.0, 1.1], failed=3), record("b", None, reason="it diverged")], ["c"]
    )
    markdown = render(board, "md")
    assert [row.label for row in board.rows] == ["a", "b", "c"]
    assert "| b | failed | failed | failed |" in markdown
    assert "| c | not run | not run | not run |" in markdown
    assert "3 of 200" in markdown
    assert notes(board) == ["b: it diverged", "c: not run"]


def test_values_are_mean_and_sample_std_over_seeds() -> None:
    cells = compile_leaderboard("data", [record("a", [1.0, 2.0, 4.0])]).rows[0].cells
    assert cells["mean_error"].value == pytest.approx(7 / 3)
    assert cells["mean_error"].spread == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert cells["std_error"].value == pytest.approx(np.std([-0.1, 0.1], ddof=1))


def test_formats_programs_read() -> None:
    board = compile_leaderboard("data", [record("a", [1.0, 1.1]), record("b", None)])
    assert json.loads(render(board, "json"))["rows"][1]["metrics"]["mean_error"]["value"] is None
    lines = render(board, "csv").splitlines()
    assert lines[0].startswith("method,mean_error,mean_error_spread,std_error")
    assert lines[1].startswith("a,1.05,")


def test_differ_is_rarely_wrong_under_the_null_and_finds_effects() -> None:
    rng = np.random.default_rng(1)
    null = [differ(rng.normal(size=10), rng.normal(size=10)) for _ in range(600)]
    effect = [differ(rng.normal(size=10), rng.normal(2, 1, size=10)) for _ in range(200)]
    assert np.mean(null) < 0.08
    assert np.mean(effect) > 0.9
    assert not differ(np.array([1.0]), np.array([5.0]))
    assert not differ(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    assert differ(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
