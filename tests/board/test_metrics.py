from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oodbench.board.leaderboard import compile_leaderboard
from oodbench.board.metrics import Weights, board_metric, check_metrics, summarize
from oodbench.errors import UnknownName
from oodbench.report.tables import legend, notes, titles_of
from oodbench.study.record import ConcludedStudy
from studies import changed, made_up


def test_summaries_over_environments() -> None:
    rows = [
        (0, "test", "a", 1.0),
        (0, "test", "b", 3.0),
        (1, "test", "a", 2.0),
        (1, "test", "b", 2.0),
        (0, "validation", "a", 9.0),
    ]
    results = pd.DataFrame(rows, columns=["seed", "part", "environment", "error"]).assign(chosen=True)
    other = results.assign(chosen=False, error=100.0)
    summary = summarize(pd.concat([results, other]), "regression")
    assert summary["mean_error"].tolist() == [2.0, 2.0]
    assert np.allclose(summary["std_error"], [np.sqrt(2), 0.0])
    assert summary["max_error"].tolist() == [3.0, 2.0]


def test_train_accuracy_counts_rows_not_environments() -> None:
    rows = [
        (0, "train", 100, 0.9, 0.5, 0.1),
        (0, "train", 300, 0.5, 0.5, 0.5),
        (0, "test", 10, 0.4, 0.3, 0.6),
        (0, "test", 10, 0.6, 0.7, 0.4),
    ]
    results = pd.DataFrame(rows, columns=["seed", "part", "rows", "accuracy", "f1", "error"]).assign(chosen=True)
    summary = summarize(results, "classification").iloc[0]
    assert np.isclose(summary["train_accuracy"], 0.6)
    assert np.isclose(summary["mean_accuracy"], 0.5)
    assert (summary["mean_f1"], summary["worst_f1"]) == (0.5, 0.3)


def classes(*rows: tuple[int, str, int, float, float]) -> pd.DataFrame:
    """Test rows of seed, environment, rows, accuracy and AUC."""
    results = pd.DataFrame(rows, columns=["seed", "environment", "rows", "accuracy", "auc"])
    return results.assign(part="test", chosen=True, configuration=0, error=1 - results["accuracy"], f1=0.5)


TWO = classes((0, "a", 100, 0.9, 0.8), (0, "b", 300, 0.5, 0.6), (1, "a", 100, 0.7, 0.7), (1, "b", 300, 0.7, 0.9))


def test_any_metric_has_a_mean_a_worst_and_a_std() -> None:
    summary = summarize(TWO, "classification", ["mean_auc", "worst_auc", "std_auc", "worst_accuracy"])
    assert np.allclose(summary["mean_auc"], [0.7, 0.8])
    assert summary["worst_auc"].tolist() == [0.6, 0.7]
    assert np.allclose(summary["std_auc"], np.sqrt([0.02, 0.02]))
    assert summary["worst_accuracy"].tolist() == [0.5, 0.7]


def test_environments_count_equally_or_by_their_rows() -> None:
    summary = summarize(TWO, "classification", ["mean_auc", "worst_auc"], "rows")
    assert np.allclose(summary["mean_auc"], [0.65, 0.85])
    assert np.allclose(summary["mean_accuracy"], [0.6, 0.7])
    assert summary["worst_auc"].tolist() == [0.6, 0.7]


@pytest.mark.parametrize("weights", ["equal", "rows"])
@pytest.mark.parametrize("name", ["mean_auc", "worst_auc", "std_auc"])
def test_a_missing_value_is_never_averaged_away(name: str, weights: Weights) -> None:
    lacking = TWO.assign(auc=[0.8, np.nan, 0.7, 0.9])
    assert summarize(lacking, "classification", [name], weights)[name].isna().tolist() == [True, False]
    assert summarize(TWO.drop(columns="auc"), "classification", [name], weights)[name].isna().all()


def test_names_of_metrics() -> None:
    assert board_metric("worst_auc").higher_is_better
    assert not board_metric("std_auc").higher_is_better
    assert not board_metric("worst_log_loss").higher_is_better
    assert (board_metric("max_error").aggregate, board_metric("max_error").column) == ("worst", "error")
    for name in ("auc", "accuracy", "worst_error", "least_auc", "mean_nothing"):
        with pytest.raises(UnknownName, match=f"there is no metric '{name}'"):
            board_metric(name)
    with pytest.raises(UnknownName, match="there is no metric of a regression 'mean_auc'"):
        check_metrics(["mean_auc"], "regression")


def study(label: str, results: pd.DataFrame, **changes: object) -> ConcludedStudy:
    return made_up(label, results, "classification", trials=1, seeds=2, metrics=("auc",), **changes)


def test_a_board_is_ranked_by_any_metric() -> None:
    better = study("better", TWO)
    worse = study("worse", TWO.assign(auc=TWO["auc"] - 0.1, error=TWO["error"] / 2))
    assert [row.label for row in compile_leaderboard("data", [better, worse]).rows] == ["worse", "better"]
    board = compile_leaderboard("data", [worse, better], rank_by="worst_auc", metrics=["mean_error"])
    assert board.metrics == ("worst_auc", "mean_error")
    assert [row.label for row in board.rows] == ["better", "worse"]
    assert "Means count every test environment equally." in legend(board)
    assert titles_of(board)[1:4] == ["tier", "worst AUC", "mean error"]
    assert notes(board) == []
    by_rows = compile_leaderboard("data", [better, worse], metrics=["mean_auc"], weights="rows")
    assert by_rows.rows[0].cells["mean_auc"].value == pytest.approx(0.75)
    assert set(by_rows.rows[0].cells["mean_auc"].intervals) <= {"seeds"}
    assert "Means count every test environment by its rows." in legend(by_rows)


def test_a_board_says_why_cells_are_missing() -> None:
    whole = study("whole", TWO)
    hard = study("hard", TWO.assign(auc=np.nan), missing={"auc": "the model gives no probabilities", "ece": "odd"})
    early = study("early", TWO.drop(columns="auc"))
    early = changed(early, metrics=())
    board = compile_leaderboard("data", [hard, whole, early], metrics=["mean_auc", "mean_error"])
    rows = {row.label: row for row in board.rows}
    assert [row.label for row in board.rows] == ["whole", "early", "hard"]
    assert rows["hard"].cells["mean_auc"].value is None
    assert rows["hard"].cells["mean_error"].value is not None
    assert not rows["hard"].cells["mean_auc"].intervals
    assert notes(board) == [
        "no auc for early: the study was made without this metric; run it again with --fresh",
        "no auc for hard: the model gives no probabilities",
    ]
    assert board.as_dict()["rows"][2]["missing"] == {"auc": "the model gives no probabilities"}
