"""What studies spent, and that they are ranked together on equal terms only."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import oodbench
from oodbench.board.leaderboard import compile_leaderboard
from oodbench.errors import UnequalTerms, UserError
from oodbench.plugin.registry import find, names
from oodbench.report.formats import render
from oodbench.report.tables import notes
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.record import ConcludedStudy, Ledger
from oodbench.study.spec import StudyOptions
from studies import failed, made_up

TINY = {"majority": 60, "minority": 20, "test_rows": 20}


def record(label: str, error: float, **more: Any) -> ConcludedStudy:
    rows = [(seed, "test", name, error + seed / 100) for seed in range(8) for name in ("a", "b")]
    results = pd.DataFrame(rows, columns=["seed", "part", "environment", "error"]).assign(chosen=True, configuration=0)
    return made_up(label, results, seeds=8, **more)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"budget__trials": 40}, "a, c: 20 trials × 8 seeds; b: 40 trials × 8 seeds."),
        ({"budget__seeds": 2, "data__fingerprint": "g" * 16}, "a, c: 20 trials × 8 seeds; b: 20 trials × 2 seeds."),
        (
            {"budget__search": "optuna", "budget__seconds": 60.0},
            "a, c: search=random; b: search=optuna, budget=1m.",
        ),
        ({"data__fingerprint": "g" * 16}, "a, c: training data ffffff; b: training data gggggg."),
        ({"opening__test_fingerprint": "d" * 16}, "a, c: test data eeeeee; b: test data dddddd."),
    ],
)
def test_unequal_studies_are_refused_and_only_shown_mixed(other: dict[str, Any], expected: str) -> None:
    records = [record("a", 2.0), record("b", 1.0, **other), record("c", 3.0)]
    with pytest.raises(UnequalTerms, match="differ in budget, data or choice") as refused:
        compile_leaderboard("data", records)
    first, second = str(refused.value).splitlines()
    assert first.endswith(expected)
    assert "--mixed" in second
    board = compile_leaderboard("data", records, mixed=True)
    assert [row.label for row in board.rows] == ["b", "a", "c"]
    assert [bool(row.unequal) for row in board.rows] == [True, False, False]
    assert [row.cells["mean_error"].mark for row in board.rows] == ["", "best", ""]
    assert [row.cells["mean_error"].tier for row in board.rows] == [None, 1, 2]
    assert " †" in render(board, "md")
    assert r"b $\dagger$ &" in render(board, "latex")
    assert notes(board)[-1].startswith("† b: ")
    assert json.loads(render(board, "json"))["rows"][0]["unequal"] == board.rows[0].unequal
    assert next(csv.DictReader(io.StringIO(render(board, "csv"))))["unequal"] == board.rows[0].unequal


def test_a_space_that_was_searched_whole_is_not_a_smaller_budget() -> None:
    board = compile_leaderboard("data", [record("a", 2.0), record("b", 1.0, ledger__trials=4)])
    assert not any(row.unequal for row in board.rows)
    assert "| 4 of 20 × 8 |" in render(board, "md")
    assert "has only n points" in render(board, "md")


def test_repeats_and_oracles_have_the_terms_of_their_study() -> None:
    chosen = record("a", 2.0, search_id="s", study_id="one")
    others = [record("a", 2.1, repeat_of="one"), record("a (oracle)", 1.9, selector="oracle", search_id="s")]
    board = compile_leaderboard("data", [chosen, *others])
    assert [(row.label, row.unequal) for row in board.rows] == [("a (oracle)", ""), ("a", "")]


def test_a_time_that_was_over_is_not_a_smaller_budget() -> None:
    studies = [record("a", 2.0, budget__seconds=60.0), record("b", 1.0, ledger__trials=4, budget__seconds=60.0)]
    board = compile_leaderboard("data", studies)
    assert not any(row.unequal for row in board.rows)
    assert "the time budget ended" in render(board, "md")
    assert "has only n points" not in render(board, "md")


def test_a_study_without_results_has_no_rank_to_refuse() -> None:
    without = failed(record("b", 1.0, budget__seeds=9), "it diverged")
    assert [row.failure for row in compile_leaderboard("data", [record("a", 2.0), without]).rows] == ["", "it diverged"]


def test_the_ledger_is_in_every_format() -> None:
    ledger = Ledger(trials=20, gradient_steps=12_000, seconds=1.5, device="cpu")
    board = compile_leaderboard("data", [record("a", 1.0, ledger=ledger)])
    assert "| a | 0 | 12,000 | 0 | 1.5 | cpu |" in render(board, "md", ledger=True)
    assert "12000" in render(board, "csv", ledger=True)
    assert "12000" not in render(board, "csv")
    assert json.loads(render(board, "json"))["rows"][0]["ledger"]["gradient_steps"] == 12_000


LABELLED = """anchor and_mask coral dann fish fishr group_dro ib_erm ib_irm icp iga lisa mmd eqrm rdm reweight sand_mask
subsample vrex""".split()
EXTRAS = {name: name for name in ("catboost", "lightgbm", "tabicl", "xgboost")} | dict.fromkeys(
    ("realmlp", "tabm"), "pytabkit"
)
TOLD = {
    "afr": [],
    "constant": [],
    "dfr": ["environments"],
    "erm": [],
    "eiil": [],
    "fdro": ["alpha0=0.1"],
    "hist_gb": [],
    "hrm": ["clusters=2"],
    "irm": ["environments"],
    "irm_matrix": ["environments"],
    "jtt": [],
    "kerhrm": ["clusters=2"],
    "logistic": [],
    "oracle": ["invariant"],
    "ridge": [],
    "srm": ["alpha0=0.1"],
    "srm:released": ["alpha0=0.1"],
    **{method: ["environments"] for method in LABELLED},
    **{method: ["alpha0=0.1"] for method in ("chi2_dro", "cvar_doro", "chi2_doro", "marginal_dro")},
    **{method: [] for method in ("dwr", "kl_dro", "mixup", "srdo", "wasserstein_dro")},
    **{method: [] for method, library in EXTRAS.items() if find_spec(library) and method != "tabicl"},  # needs weights
}


def information(method: str, fix: dict[str, Any] | None = None) -> list[str]:
    does_regression = "regression" in find("method", method.partition(":")[0]).tasks
    dataset, settings = ("selection_bias", TINY) if does_regression else ("spurious_correlation", {"group_rows": 50})
    options = StudyOptions(settings=settings, fix=fix or {}, trials=1, seeds=1)
    (study,) = plan(resolve(Request([method], [dataset], options)), "cpu")
    return study.information


def test_what_every_method_is_told() -> None:
    assert set(names("method")) - set(EXTRAS) <= set(TOLD)
    assert {method: information(method) for method in TOLD} == TOLD


def test_knowledge_that_comes_by_hand_is_told_too() -> None:
    assert information("fdro", {"alpha0": 0.3}) == ["alpha0=0.3 by hand"]
    assert information("kerhrm", {"clusters": 3}) == ["clusters=3 by hand"]
    assert information("irm", {"penalty": 3}) == ["environments"]


def test_information_is_in_every_format() -> None:
    board = compile_leaderboard("data", [record("a", 1.0, information=("environments",))])
    assert "| environments | 0 |" in render(board, "md")
    assert json.loads(render(board, "json"))["rows"][0]["information"] == "environments"
    assert next(csv.DictReader(io.StringIO(render(board, "csv"))))["information"] == "environments"


@pytest.fixture(scope="module")
def recorded(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three studies; the newest of fdro has a smaller budget than that of erm."""
    directory = tmp_path_factory.mktemp("record")
    for methods, trials in ((["erm", "fdro"], 2), (["fdro"], 1)):
        oodbench.run(
            methods,
            "selection_bias",
            settings=TINY,
            trials=trials,
            seeds=2,
            directory=directory,
            recipe={"steps": 20},
        )
    return directory


def test_a_record_with_unequal_studies(cli: Callable[..., Any], recorded: Path) -> None:
    assert [row.budget.trials for row in board(recorded, trials=2).rows if row.budget] == [2, 2]
    assert [row.label for row in board(recorded, trials=1, seeds=2).rows] == ["fdro (steps=20)"]
    with pytest.raises(UserError, match="no study on .* has this budget"):
        board(recorded, trials=5)
    with pytest.raises(UnequalTerms):
        board(recorded)
    settings = [part for name, value in TINY.items() for part in ("--set", f"{name}={value}")]
    command = ["leaderboard", "selection_bias", *settings, "--directory", str(recorded)]
    done = cli(*command)
    assert (done.code, done.out, len(done.err.strip().splitlines())) == (2, "", 2)
    assert "erm (steps=20): 2 trials × 2 seeds; fdro (steps=20): 1 trial × 2 seeds" in done.err
    mixed = cli(*command, "--mixed", "--ledger")
    assert mixed.code == 0, mixed.err
    assert "1 × 2 †" in mixed.out
    assert f"{2 * 2 * 20 * 80:,}" in mixed.out  # row visits of erm: trials x seeds x steps x rows


def board(directory: Path, **more: Any) -> oodbench.Leaderboard:
    return oodbench.leaderboard("selection_bias", settings=TINY, directory=directory, **more)
