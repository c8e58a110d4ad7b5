"""oodbench compare: verdicts where the truth is known, every kind of source, and exit codes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import oodbench
from oodbench.board.cells import MethodScores, write_cells
from oodbench.board.comparison import compare
from oodbench.errors import UserError
from oodbench.record.sources import read_scores
from oodbench.record.tracking import Record

Cli = Callable[..., Any]
NOISE = np.random.default_rng(0).normal(0, 0.05, size=(3, 12, 4))  # [method, seed, environment]


def scores(
    method: str, error: float, noise: int = 0, seeds: int = 12, dataset_id: str = "data", **columns: Any
) -> MethodScores:
    rows = [
        {"seed": seed, "environment": f"e{place}", "error": error + NOISE[noise, seed, place]} | columns
        for seed in range(seeds)
        for place in range(4)
    ]
    return MethodScores(dataset_id, method, "classification" if columns else "regression", pd.DataFrame(rows))


def verdicts(a: list[MethodScores], b: list[MethodScores], **options: Any) -> dict[str, str]:
    return {row.method: row.verdict for row in compare(a, b, **options).rows}


def test_verdicts() -> None:
    a = [scores("same", 1.0), scores("noisy", 1.0), scores("worse", 1.0), scores("better", 1.0), scores("gone", 1.0)]
    b = [scores("same", 1.0), scores("noisy", 1.0, 1), scores("worse", 1.2, 1), scores("better", 0.8, 2)]
    b += [scores("new", 1.0)]
    found = verdicts(a, b)
    assert found == {
        "same": "identical", "noisy": "no difference shown", "worse": "worse", "better": "better", "gone": "only in A",
        "new": "only in B",
    }  # fmt: skip
    result = compare(a, b)
    assert result.worsened
    worse = next(row for row in result.rows if row.method == "worse")
    assert worse.interval is not None
    assert worse.difference is not None
    assert worse.difference == pytest.approx(0.2, abs=0.05)
    assert worse.interval[0] < worse.difference < worse.interval[1]
    assert (verdicts(b, a)["worse"], verdicts(b, a)["better"]) == ("better", "worse")


def test_one_method_against_another_and_higher_is_better() -> None:
    a, b = scores("erm", 1.0, accuracy=0.5, f1=0.4), scores("srm", 0.5, 1, accuracy=0.9, f1=0.4)
    assert verdicts([a], [b]) == {"erm → srm": "better"}
    assert verdicts([a], [b], metric="mean_accuracy") == {"erm → srm": "better"}
    assert verdicts([b], [a], metric="mean_accuracy") == {"srm → erm": "worse"}
    assert verdicts([a], [b], metric="mean_f1") == {"erm → srm": "identical"}


def test_metrics_of_the_registry_are_compared_with_their_directions(tmp_path: Path) -> None:
    a, b = (
        scores("erm", 1.0, accuracy=0.5, f1=0.4, auc=0.6, ece=0.2),
        scores("srm", 0.5, 1, accuracy=0.5, f1=0.4, auc=0.8, ece=0.3),
    )
    assert verdicts([a], [b], metric="mean_auc") == {"erm → srm": "better"}
    assert verdicts([a], [b], metric="worst_ece") == {"erm → srm": "worse"}
    (tmp_path / "a_cells.csv").write_text(write_cells([a]))
    (again,) = read_scores(str(tmp_path), lambda: pytest.fail("no record is needed"))
    assert verdicts([again], [b], metric="mean_auc") == {"erm → srm": "better"}
    assert a.table is not None
    missing = MethodScores("data", "erm", "classification", a.table.assign(auc=[np.nan, *a.table["auc"][1:]]))
    with pytest.raises(UserError, match="mean_auc has no value per seed"):
        compare([missing], [b], metric="mean_auc")
    for metric in ("train_accuracy", "test_stability"):
        with pytest.raises(UserError, match="there is no metric"):
            compare([a], [b], metric=metric)


def test_few_seeds_can_be_identical_but_not_better() -> None:
    a, b = (
        [scores("x", 1.0, seeds=3), scores("y", 1.0, seeds=3)],
        [scores("x", 1.0, seeds=3), scores("y", 9.0, seeds=3)],
    )
    result = compare(a, b)
    assert [(row.verdict, row.reason) for row in result.rows] == [
        ("identical", ""),
        ("too few to tell", "2 more are needed"),
    ]
    assert not result.worsened


def test_a_failure_in_b_alone_is_a_worsening() -> None:
    failed = MethodScores("data", "x", "regression", None)
    assert compare([scores("x", 1.0)], [failed]).worsened
    both = compare([failed, scores("y", 1.0)], [scores("x", 1.0), scores("y", 1.0)])
    assert {row.method: row.verdict for row in both.rows} == {"y": "identical", "x": "failed in A"}


def test_what_cannot_be_compared() -> None:
    a = scores("x", 1.0)
    assert a.table is not None
    elsewhere = MethodScores("data", "x", "regression", a.table.assign(environment="other"))
    later = MethodScores("data", "x", "regression", a.table.assign(seed=a.table["seed"] + 100))
    for b, expected in (
        (elsewhere, "the test environments differ"),
        (later, "no seed in common"),
        (scores("x", 1.0, accuracy=0.5, f1=0.5), "regression in A and classification in B"),
        (scores("x", 1.0, dataset_id="data r=2"), "they have no method and dataset setting in common"),
    ):
        with pytest.raises(UserError, match=expected):
            compare([a], [b])
    with pytest.raises(UserError, match="there is no metric of a regression 'mean_f1'"):
        compare([a], [a], metric="mean_f1")
    with pytest.raises(UserError, match="max_error has no value per environment"):
        compare([a], [a], metric="max_error", over="environments")


def test_cells_are_read_as_they_were_written(tmp_path: Path) -> None:
    written = [scores("a", 1.0), scores("b (x=1, y=2)", 2.0), MethodScores("data", "failed", "regression", None)]
    (tmp_path / "board_cells.csv").write_text(write_cells(written))
    again = read_scores(str(tmp_path), lambda: pytest.fail("no record is needed"))
    assert [one.method for one in again] == ["a", "b (x=1, y=2)"]
    for one, other in zip(written, again, strict=False):
        assert one.table is not None
        assert other.table is not None
        pd.testing.assert_frame_equal(one.table, other.table, check_exact=True)


def test_revisions_and_exit_codes(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=x", "-c", "user.email=x@y.z")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    folder = tmp_path / "boards"
    folder.mkdir()
    git("init", "-q")
    for error in (1.0, 1.5):
        (folder / "one_cells.csv").write_text(write_cells([scores("x", error), scores("y", 1.0)]))
        (folder / "one.csv").write_text("method,mean_error\n")  # a table, without scores
        git("add", "-A")
        git("commit", "-qm", str(error))
    done = cli("compare", "HEAD~1:boards", "HEAD:boards/one_cells.csv")
    assert done.code == 1, done.err
    assert "worse" in done.out
    assert "identical" in done.out
    told = cli("compare", "boards", "HEAD~1:boards", "--json")
    assert told.code == 0
    assert [row["verdict"] for row in told.json()["rows"]] == ["better", "identical"]
    (tmp_path / "broken.json").write_text("{")
    done = cli("compare", "boards", "boards", "--over", "cells")
    assert (done.code, "there is no unit for --over 'cells'" in done.err) == (2, True)
    assert len(done.err.strip().splitlines()) == 2
    monkeypatch.chdir(tmp_path)
    for mistake, expected in (
        ("nowhere", "is no file or folder, no REVISION:PATH in git, and no label or run id"),
        ("HEAD:nowhere", "has no file or folder 'nowhere'"),
        ("boards/one.csv", "is not a file of scores"),
        ("broken.json", "is not a file of scores"),
    ):
        with pytest.raises(UserError, match=expected):
            read_scores(mistake, lambda: Record(None, tmp_path / "empty"))


def test_repeats_price_and_comparison_of_a_real_run(cli: Cli, ray_address: str, tmp_path: Path) -> None:
    settings = ["--set", "majority=200", "--set", "minority=40", "--set", "test_rows=50"]
    run = ["run", "-m", "erm", "-m", "fdro", "-d", "selection_bias", *settings, "--trials", "3", "--seeds", "6"]
    done = cli(*run, "--address", ray_address, "--repeats", "2", "--price")
    assert done.code == 0, done.err
    assert "2 searches on the same data" in done.err
    for text in ("over searches", "price of selection", "seed left out", "selectors", "tier", "95 % interval"):
        assert text in done.out, text
    board = ["leaderboard", "selection_bias", *settings]
    assert cli(*board, "--price").out == done.out  # the record has all of it
    against = cli(*board, "--against", "erm")
    assert against.code == 0, against.err
    assert "against erm" in against.out
    assert "tier" not in against.out.replace("in no tier", "")  # the legend of the constant
    (refused, remedy) = cli(*board, "--against", "emr").err.strip().splitlines()
    assert "there is no method on this board 'emr'. Did you mean 'erm'?" in refused
    assert "Known: erm" in remedy
    told = cli(*board, "--price", "--cells", "all.csv", "--json").json()
    rows = {row["method"]: row for row in told["rows"]}
    assert sorted(rows) == ["erm", "fdro"]
    fdro = rows["fdro"]["metrics"]["mean_error"]
    assert rows["fdro"]["searches"] == 2
    assert fdro["search_spread"] > 0
    assert fdro["price_of_selection"] >= -1e-9
    picks = rows["fdro"]["selectors"]
    assert {"cvar", "mean", "mean_sd", "one_se", "oracle", "worst"} <= picks.keys()
    assert fdro["price_of_selection"] == pytest.approx(fdro["value"] - picks["oracle"]["metrics"]["mean_error"])
    assert picks["worst"]["metrics"]["mean_error"] == fdro["value"]
    assert fdro["seed_left_out"] > 0
    assert len(rows["fdro"]["results"]) == 6 * 6
    (tmp_path / "board.json").write_text(json.dumps(told))
    same = cli("compare", "all.csv", "board.json", "--json")
    assert same.code == 0, same.err
    assert {row["verdict"] for row in same.json()["rows"]} == {"identical"}
    by_label, by_run = cli("compare", "erm", "fdro", "--json"), [rows[name]["run_id"] for name in ("erm", "fdro")]
    assert by_label.json()["rows"] == cli("compare", *by_run, "--json").json()["rows"]
    assert by_label.json()["rows"][0]["method"] == "erm → fdro"


def test_mistakes_of_a_run(tmp_path: Path) -> None:
    for options, expected in (
        ({"repeats": 0}, "--repeats must be 1 to 100, not 0."),
        ({"price": True, "selector": "oracle"}, "--price compares a choice on validation data with the oracle"),
    ):
        with pytest.raises(UserError, match=expected):
            oodbench.run("erm", "selection_bias", directory=tmp_path, **options)
