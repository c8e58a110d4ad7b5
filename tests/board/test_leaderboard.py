from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from oodbench.board.leaderboard import compile_leaderboard
from oodbench.board.standing import label_of
from oodbench.errors import UserError
from oodbench.report.formats import render
from oodbench.report.tables import notes, rich_table
from oodbench.study.record import ConcludedStudy
from oodbench.study.study import ORACLE
from studies import changed, made_up


def record(
    label: str, errors: list[float] | None, failed: int = 0, reason: str = "", names: Sequence[str] = ("a", "b")
) -> ConcludedStudy:
    results = None
    if errors is not None:
        results = pd.DataFrame(
            [
                (seed, "test", name, error + shift)
                for seed, error in enumerate(errors)
                for name, shift in zip(names, np.linspace(-0.1, 0.1, len(names)), strict=True)
            ],
            columns=["seed", "part", "environment", "error"],
        ).assign(chosen=True, configuration=0)
    return made_up(label, results, ledger__failed_trainings=failed, reason=reason)


RNG = np.random.default_rng(0)
NOISE = RNG.normal(0, 0.1, 10)


def test_a_clear_winner_is_marked_best() -> None:
    board = compile_leaderboard("data", [record("a", list(1 + NOISE)), record("b", list(2 + RNG.normal(0, 0.1, 10)))])
    assert [row.label for row in board.rows] == ["a", "b"]
    assert [row.cells["mean_error"].mark for row in board.rows] == ["best", ""]
    assert "| a | 1 | **1." in render(board, "md")


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
    assert lines[0].startswith("method,tier,mean_error,mean_error_spread,mean_error_low,mean_error_high,std_error")
    assert lines[1].startswith("a,,1.05,")


def test_tiers_and_intervals_are_on_the_board_in_every_format() -> None:
    board = compile_leaderboard(
        "data",
        [
            record("a", list(1 + NOISE)),
            record("b", list(1.01 + NOISE[::-1])),
            record("c", list(3 + NOISE[::-1])),
        ],
    )
    assert [(row.label, row.cells["mean_error"].tier) for row in board.rows] == [("a", 1), ("b", 1), ("c", 2)]
    low, high = board.rows[0].cells["mean_error"].intervals["seeds"]
    value = board.rows[0].cells["mean_error"].value
    assert value is not None
    assert low < value < high
    shown = f"{low:.3f} to {high:.3f}"
    assert re.search(rf"\| a \| 1 \| ≈ [^|]+ \| {shown} \|", render(board, "md"))
    assert re.search(rf"a & 1 & .* & {shown} &", render(board, "latex"))
    first = next(csv.DictReader(render(board, "csv").splitlines()))
    assert first["tier"] == "1"
    assert float(first["mean_error_low"]) == pytest.approx(low)
    told = json.loads(render(board, "json"))["rows"][2]
    assert told["metrics"]["mean_error"]["tier"] == 2
    assert len(told["results"]) == 20
    assert set(told["results"][0]) == {"seed", "environment", "error"}
    shown_as = io.StringIO()
    Console(width=200, file=shown_as).print(rich_table(board))
    last = board.rows[2].cells["mean_error"].value
    assert last is not None
    assert last == pytest.approx(3 + NOISE.mean())
    assert re.search(rf"│ c +│ +2 │ +{last:.3f} ± ", shown_as.getvalue())


def test_with_few_seeds_nothing_is_claimed_and_the_board_says_how_many_more() -> None:
    methods = [record("a", [1.0, 1.1, 1.2]), record("b", [5.0, 6.0, 5.5])]
    reference = changed(record("constant", [7.0, 8.0, 9.0]), ranked=False)
    oracle = changed(record(f"a ({ORACLE})", [0.5, 0.6, 0.7]), selector="oracle")
    board = compile_leaderboard("data", [*methods, reference, oracle])
    assert [row.cells["mean_error"].tier for row in board.rows] == [None] * 4
    text = render(board, "md")
    for label, shown in (("a", "2 more seeds"), ("b", "2 more seeds"), ("constant ‡", "–"), (f"a ({ORACLE})", "–")):
        assert f"| {label} | {shown} |" in text
    assert "Too few seeds to tell methods apart: 3, and a test needs 2 more." in text
    assert "a & 2 more seeds &" in render(board, "latex")
    told = json.loads(render(board, "json"))
    assert told["too_few_to_tell"] is True
    assert [row["metrics"]["mean_error"]["more_needed"] for row in told["rows"]] == [0, 2, 2, 0]
    names = ["e1", "e2", "e3", "e4"]
    few = [record(label, [error, error + 0.1], names=names) for label, error in (("a", 1.0), ("b", 2.0))]
    assert "| a | 1 more environment |" in render(compile_leaderboard("data", few, over="environments"), "md")


def test_tiers_are_shown_wherever_intervals_are() -> None:
    for seeds in range(2, 8):
        studies = [record("a", list(1 + NOISE[:seeds])), record("b", list(2 + NOISE[::-1][:seeds]))]
        for row in compile_leaderboard("data", studies).rows:
            cell = row.cells["mean_error"]
            assert (cell.tier is not None) == ("seeds" in cell.intervals) == (cell.missing == 0)


def test_a_board_against_a_method_tests_that_alone() -> None:
    rng = np.random.default_rng(5)
    lucky = [record(f"m{number}", list(1 + rng.normal(0, 0.1, 10))) for number in range(18)]
    studies = [record("erm", list(0.84 + rng.normal(0, 0.1, 10))), record("bad", list(3 + NOISE)), *lucky]
    usual, against = (compile_leaderboard("data", studies, against=label) for label in ("", "erm"))
    sides = {row.label: row.cells["mean_error"].side for row in against.rows}
    assert sides.pop("erm") is None
    assert sides["bad"] == "worse"
    assert set(sides.values()) == {"worse", "no difference shown"}
    assert all(row.cells["mean_error"].tier is None and not row.cells["mean_error"].mark for row in against.rows)
    text = render(against, "md")
    assert "| method | against erm | mean error |" in text
    assert "| bad | worse |" in text
    assert "Holm correction over these comparisons only" in text
    assert "Tier 1" not in text
    assert "Against erm" in render(against, "latex")
    told = json.loads(render(against, "json"))
    assert told["against"] == "erm"
    assert told["rows"][-1]["metrics"]["mean_error"]["against"] == "worse"
    assert against.frame().set_index("method")["against"]["bad"] == "worse"
    assert "against" not in usual.frame()


def test_a_board_may_be_against_a_reference() -> None:
    methods = [record("a", list(1 + NOISE)), record("b", list(2 + RNG.normal(0, 0.1, 10)))]
    reference = changed(record("constant", list(1.5 + NOISE[::-1])), ranked=False)
    board = compile_leaderboard("data", [*methods, reference], against="constant")
    assert [(row.label, row.cells["mean_error"].side) for row in board.rows] == [
        ("a", "better"), ("constant", None), ("b", "worse"),
    ]  # fmt: skip
    other = compile_leaderboard("data", [*methods, reference], against="a")
    assert {row.label: row.cells["mean_error"].side for row in other.rows} == {
        "a": None,
        "b": "worse",
        "constant": None,
    }


def test_higher_is_better_against_a_method() -> None:
    studies = []
    for label, accuracy in (("a", 0.9), ("b", 0.5)):
        study = record(label, list(1 - accuracy + NOISE / 10))
        assert study.results is not None
        results = study.results.assign(accuracy=1 - study.results["error"], f1=0.5, rows=10, loss=1.0)
        studies.append(changed(replace(study, results=results), task="classification"))
    board = compile_leaderboard("data", studies, metrics=["mean_accuracy"], against="b")
    assert {row.label: row.cells["mean_accuracy"].side for row in board.rows} == {"a": "better", "b": None}


def test_against_what_is_not_compared_is_refused_in_two_lines() -> None:
    oracle = changed(record(f"a ({ORACLE})", list(NOISE)), selector="oracle")
    studies = [record("a", list(1 + NOISE)), record("erm", list(2 + NOISE)), record("failed", None), oracle]
    for label, expected in (
        ("emr", "there is no method on this board 'emr'. Did you mean 'erm'?\nKnown: a, "),
        ("failed", "methods cannot be compared with 'failed': it has no results.\nName another"),
        (f"a ({ORACLE})", "it is an oracle, chosen on test data.\nName another"),
    ):
        with pytest.raises(UserError) as refused:
            compile_leaderboard("data", studies, against=label)
        assert expected in str(refused.value)
        assert len(str(refused.value).splitlines()) == 2


def test_over_environments_only_means_have_tiers() -> None:
    names = [f"e{number}" for number in range(8)]
    one, other = record("a", [1.0, 1.1], names=names), record("b", [3.0, 3.1], names=names)
    board = compile_leaderboard("data", [one, other], over="environments")
    assert [row.cells["mean_error"].tier for row in board.rows] == [1, 2]
    assert [row.cells["max_error"].tier for row in board.rows] == [None, None]
    assert "over environments" in render(board, "md")


def test_an_oracle_is_shown_but_not_compared() -> None:
    oracle = changed(record(f"a ({ORACLE})", list(1.5 + NOISE)), selector="oracle")
    board = compile_leaderboard("data", [record("a", list(2 + NOISE)), oracle, record("b", list(3 + NOISE))])
    cells = {row.label: row.cells["mean_error"] for row in board.rows}
    assert [cells["a"].tier, cells["b"].tier, cells[f"a ({ORACLE})"].tier] == [1, 2, None]


def test_repeats_of_a_search_are_a_second_error_bar_and_change_nothing_else() -> None:
    first, other = changed(record("a", list(1 + NOISE)), study_id="first"), record("b", list(2 + NOISE))
    repeats = [changed(record("a", list(mean + NOISE)), study_id=f"r{mean}", repeat_of="first") for mean in (1.2, 1.4)]
    alone, repeated = (compile_leaderboard("data", some) for some in ([first, other], [first, other, *repeats]))
    cell = repeated.rows[0].cells["mean_error"]
    assert cell.search_spread == pytest.approx(0.2)
    assert repeated.rows[0].searches == 3
    assert "| ± 0.200 (3) |" in render(repeated, "md")
    assert [row.label for row in repeated.rows] == ["a", "b"]
    for row, again in zip(alone.rows, repeated.rows, strict=True):
        assert {name: replace(cell, search_spread=None) for name, cell in again.cells.items()} == row.cells


def test_a_reference_is_shown_without_a_tier_and_changes_none() -> None:
    methods = [record("a", list(1 + NOISE)), record("b", list(2 + RNG.normal(0, 0.1, 10)))]
    reference = changed(record("constant", list(0.5 + NOISE)), ranked=False)
    board = compile_leaderboard("data", [*methods, reference])
    assert [(row.label, row.cells["mean_error"].tier) for row in board.rows] == [("constant", None), ("a", 1), ("b", 2)]
    without = compile_leaderboard("data", methods)
    assert board.tiers == without.tiers
    assert [row.cells["mean_error"] for row in board.rows[1:]] == [row.cells["mean_error"] for row in without.rows]
    assert "| constant ‡ | – |" in render(board, "md")
    assert "‡: a reference, shown and in no tier." in render(board, "md")


def test_a_method_that_collapsed_onto_a_reference_is_marked() -> None:
    errors = list(1 + NOISE)
    constant = changed(record("constant", errors), ranked=False)
    told = changed(record("oracle", list(0.5 + NOISE)), ranked=False, information=("invariant",))
    same, as_told = record("same", [error * (1 + 1e-6) for error in errors]), record("as_told", list(0.5 + NOISE))
    board = compile_leaderboard("data", [constant, told, same, as_told, record("other", list(1.01 + NOISE))])
    assert [row.label for row in board.rows if row.collapsed] == ["same"]
    assert "| same =‡ |" in render(board, "md")
    assert "\\ddagger" in render(board, "latex")


def with_constant(study: ConcludedStudy, errors: list[float]) -> ConcludedStudy:
    """As a study is recorded: with rows that say how the constant does."""
    own = study.results
    constant = record("", errors).results
    assert own is not None
    assert constant is not None
    constant = constant.assign(part="constant", configuration=-1, chosen=False)
    return changed(study, results=pd.concat([own, constant], ignore_index=True))


def test_every_board_has_the_line_of_the_constant_though_nobody_asked() -> None:
    errors = list(1.5 + NOISE)
    studies = [record("a", list(1 + NOISE)), record("b", list(2 + NOISE)), record("same", errors)]
    board = compile_leaderboard("data", [with_constant(study, errors) for study in studies])
    assert board.constant is not None
    assert board.constant.cells["mean_error"].value == pytest.approx(np.mean(errors))
    assert [row.label for row in board.lines] == ["a", "constant", "same", "b"]
    assert [row.label for row in board.rows if row.collapsed] == ["same"]
    plain = compile_leaderboard("data", studies)
    assert plain.constant is None
    assert board.tiers == plain.tiers
    for format in ("md", "latex", "csv"):
        assert "constant" in render(board, format)
        assert "constant" not in render(plain, format)
    assert "| constant ‡ | – | 1." in render(board, "md")
    assert json.loads(render(board, "json"))["constant"]["reference"] is True


def test_a_study_of_the_constant_takes_the_place_of_its_line() -> None:
    errors = list(1.5 + NOISE)
    own = changed(record("constant", errors), ranked=False)
    board = compile_leaderboard("data", [with_constant(study, errors) for study in (own, record("a", errors))])
    assert board.constant is None
    assert [row.label for row in board.lines] == ["a", "constant"]
    assert board.rows[0].collapsed


def test_a_methods_name_stands_for_its_only_label() -> None:
    methods = {
        "erm (steps=20)": "erm",
        "hist_gb": "hist_gb",
        "hist_gb:jtt": "hist_gb",
        "irm (a=1)": "irm",
        "irm (a=2)": "irm",
    }
    for name, meant in {"erm": "erm (steps=20)", "hist_gb": "hist_gb", "irm": "irm", "": "", "emr": "emr"}.items():
        assert label_of(name, methods) == meant
