"""What other choices come to: with a seed left out, and by other selectors."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oodbench.board.choice import as_chosen, rank_correlation
from oodbench.board.leaderboard import compile_leaderboard
from oodbench.report.figures import write_figures
from oodbench.report.formats import render
from oodbench.report.page import Chapter, render_page
from oodbench.study.record import Chosen, ConcludedStudy
from oodbench.study.selectors import select
from studies import changed, made_up

SEEDS, CONFIGURATIONS = 4, 3
VALIDATION = np.array([[2.0, 2, 2, 9], [3, 3, 3, 3], [4, 4, 4, 4]])  # [configuration, seed]
TEST = np.array([[1.0, 1, 1, 5], [2, 2, 2, 2], [0, 0, 0, 0]])


def rows(part: str, values: np.ndarray) -> list[tuple[int, int, str, str, float]]:
    return [
        (configuration, seed, part, name, values[configuration, seed] + shift)
        for configuration in range(CONFIGURATIONS)
        for seed in range(SEEDS)
        for name, shift in (("a", -0.5), ("b", 0.5))
    ]


def study(opened_all: bool = True, choose: str = "study", selector: str = "mean") -> ConcludedStudy:
    """As `conclude` leaves it: the chosen configuration is tested, and what else was opened has a part of its own."""
    columns = ["configuration", "seed", "part", "environment", "error"]
    validation, tested = (
        pd.DataFrame(rows(part, values), columns=columns)
        for part, values in (("validation", VALIDATION), ("test", TEST))
    )
    choice = select(validation, selector, SEEDS, [{}] * CONFIGURATIONS, choose)
    own = tested["configuration"] == tested["seed"].map(choice.of_seed)
    without = tested["configuration"] == tested["seed"].map(choice.without_seed)
    opened = tested[~own if opened_all else without & ~own].assign(part="opened")
    results = pd.concat([validation, tested[own], opened], ignore_index=True).assign(accuracy=np.nan, f1=np.nan)
    results["chosen"] = results["configuration"] == results["seed"].map(choice.of_seed)
    made = made_up("a", results, trials=CONFIGURATIONS, seeds=SEEDS, choice=choice, selector=selector, choose=choose)
    return changed(made, opening__opened_all=opened_all)


@pytest.mark.parametrize("opened_all", [False, True])
def test_the_mean_with_each_seed_left_out_of_the_choice(opened_all: bool) -> None:
    made = study(opened_all)
    assert made.record.choice is not None
    # the first is the best of seeds 0, 1, 2; its mean over all seeds is 3.75, so that without 3 alone it is chosen
    assert made.record.choice.without_seed == {0: 1, 1: 1, 2: 1, 3: 0}
    assert made.record.choice.configuration == 1
    cell = compile_leaderboard("data", [made]).rows[0].cells["mean_error"]
    assert cell.value == 2
    assert cell.without_seed == pytest.approx((2 + 2 + 2 + 5) / 4)
    board = compile_leaderboard("data", [made])
    for format in ("md", "latex"):
        assert "chosen on the other seeds" in render(board, format)
    assert "2.750" in render(board, "md")
    assert "mean_error_seed_left_out" in render(board, "csv")


def test_what_was_not_opened_tells_nothing() -> None:
    made = study(opened_all=False)
    assert made.results is not None
    assert as_chosen(made.results, dict.fromkeys(range(SEEDS), 2)) is None
    (row,) = compile_leaderboard("data", [made], price=True).rows
    assert not row.picks
    assert row.cells["mean_error"].price is None
    (without,) = compile_leaderboard("data", [changed(made, choice=Chosen("mean", 1, 3.0, {}))]).rows
    assert without.cells["mean_error"].without_seed is None


def test_the_price_of_every_selector_from_the_same_trainings() -> None:
    board = compile_leaderboard("data", [study()], price=True)
    (row,) = board.rows
    assert {name: pick.configuration for name, pick in row.picks.items()} == {
        "mean": 1, "worst": 1, "mean_sd": 1, "cvar": 1, "one_se": 1, "oracle": 2,
    }  # fmt: skip
    assert row.cells["mean_error"].price == 2
    assert row.cells["max_error"].price == 2
    assert row.picks["mean"].correlation == pytest.approx(-(3**0.5) / 2)  # 3.75, 3, 4 against 2, 2, 0
    assert row.picks["oracle"].correlation == 1
    assert "2.000 (+2.000)" in render(board, "md")
    assert "opened after the choice" in render(board, "md")
    assert not compile_leaderboard("data", [study()]).rows[0].picks


def test_a_configuration_for_each_seed() -> None:
    made = study(choose="seed")
    choice = made.record.choice
    assert choice is not None
    assert choice.by_seed == {0: 0, 1: 0, 2: 0, 3: 1}
    assert (choice.configuration, choice.score, choice.without_seed) == (0, 2.25, {})
    board = compile_leaderboard("data", [made], price=True)
    cell = board.rows[0].cells["mean_error"]
    assert cell.value == pytest.approx(5 / 4)
    assert cell.without_seed is None
    assert cell.price == pytest.approx(5 / 4)  # the oracle chooses for each seed, too


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["mean", "worst", "mean_sd", "cvar", "one_se"]))
def test_without_a_seed_is_the_choice_of_the_others(entropy: int, selector: str) -> None:
    rng = np.random.default_rng(entropy)
    table = pd.DataFrame(
        [(c, s, e, rng.normal()) for c in range(5) for s in range(3) for e in "xyz"],
        columns=["configuration", "seed", "environment", "error"],
    )
    choice = select(table, selector, 3, [{}] * 5)
    for seed in range(3):
        others = select(table[table["seed"] != seed], selector, 2, [{}] * 5)
        assert choice.without_seed[seed] == others.configuration
    by_seed = select(table, selector, 3, [{}] * 5, "seed").by_seed
    for seed in range(3):
        assert by_seed[seed] == select(table[table["seed"] == seed], selector, 1, [{}] * 5).configuration


def test_the_figure_of_all_configurations(tmp_path: Path) -> None:
    assert [path.name for path in write_figures("data", [study(opened_all=False)], tmp_path)] == ["distribution.svg"]
    drawn = write_figures("data", [study()], tmp_path)
    assert [path.name for path in drawn] == ["distribution.svg", "selection.svg"]
    texts = re.findall(r"<!-- (.*?) -->", drawn[1].read_text(), re.DOTALL)
    assert any("opened after the choice" in text for text in texts)
    assert any(text.startswith("a: cvar -0.87, mean -0.87") and "oracle" not in text for text in texts)
    page = render_page("A page", [Chapter("", [compile_leaderboard("data", [study()])])])
    assert "a, configuration 1 (chosen): validation error 3.000, test error 2.000" in page
    assert "a, configuration 2: validation error 4.000, test error 0.000" in page


def test_rank_correlation() -> None:
    rng = np.random.default_rng(0)
    scores, errors = rng.normal(size=20), rng.normal(size=20)
    stats = pytest.importorskip("scipy.stats")
    expected = stats.spearmanr(scores, errors).statistic
    assert rank_correlation(dict(enumerate(scores)), dict(enumerate(errors))) == pytest.approx(expected)
    assert rank_correlation({0: 1.0, 1: 1.0}, {0: 1.0, 1: 2.0}) is None
    assert rank_correlation({0: 1.0}, {0: 1.0}) is None
