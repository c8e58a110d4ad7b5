"""What shows many methods at once: the front of cost and result, critical differences, and the heat map's groups."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodbench.board.leaderboard import Leaderboard, compile_leaderboard
from oodbench.report import heat
from oodbench.report.cost import draw_cost, find_front
from oodbench.report.critical import draw_critical, find_groups
from oodbench.report.drawing import style
from oodbench.report.heat import heat_map
from oodbench.report.page_data import looks_on, studies_shown
from pages import study
from studies import changed

places = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=2), st.tuples(st.integers(0, 5).map(float), st.integers(0, 5).map(float))
)


def board(centres: dict[str, float], seeds: int = 10) -> Leaderboard:
    return compile_leaderboard(
        "data", [study(label, centre, ["a", "b"], seeds, 3) for label, centre in centres.items()]
    )


@given(places, st.booleans())
def test_the_front_is_what_nothing_beats(points: dict[str, tuple[float, float]], higher: bool) -> None:
    front = find_front(points, higher)

    def beats(one: str, other: str) -> bool:
        (cost, value), (other_cost, other_value) = points[one], points[other]
        better = value >= other_value if higher else value <= other_value
        return cost <= other_cost and better and points[one] != points[other]

    unbeaten = {label for label in points if not any(beats(other, label) for other in points)}
    assert {points[label] for label in front} == {points[label] for label in unbeaten}
    assert len({points[label] for label in front}) == len(front)
    assert [points[label][0] for label in front] == sorted(points[label][0] for label in front)


def test_references_are_drawn_and_are_not_the_front() -> None:
    studies = [study(label, centre, ["a", "b"], 10, 3) for label, centre in (("erm", 0.2), ("irm", 0.3))]
    studies = [changed(studies[0], ranked=False), *studies[1:]]
    made = compile_leaderboard("data", studies)
    with style():
        figure = draw_cost(made, looks_on(made), "gradient_steps")
    assert figure is not None
    explained: list[Any] = figure.findobj(lambda one: hasattr(one, "explanations"))
    told = [text for artist in explained for text in artist.explanations]
    assert [text.endswith("on the front") for text in sorted(told)] == [False, True]
    assert "gradient steps" in told[0]


def test_bars_join_neighbours_that_cannot_be_told_apart() -> None:
    made = board({"erm": 0.2, "irm": 0.201, "srm": 0.5, "fdro": 0.9})
    worse = {row.label: set(row.cells["mean_error"].worse_than) for row in made.rows}
    groups = find_groups(made.rows, "mean_error")
    for first, last in groups:
        members = [row.label for row in made.rows[first : last + 1]]
        assert not any(one in worse[other] for one in members for other in members)
    labels = [{row.label for row in made.rows[first : last + 1]} for first, last in groups]
    assert labels == [{"erm", "irm"}]
    assert worse["fdro"] == {"erm", "irm", "srm"}
    assert made.as_dict()["rows"][-1]["metrics"]["mean_error"]["worse_than"] == list(
        made.rows[-1].cells["mean_error"].worse_than
    )


def test_nothing_is_drawn_where_nothing_was_compared() -> None:
    for made in (board({"erm": 0.2}), board({"erm": 0.2, "irm": 0.5}, seeds=2)):
        with style():
            assert draw_critical(made, looks_on(made)) is None


def test_the_heat_map_groups_methods_by_what_they_were_told() -> None:
    told = {"erm": (), "irm": ("environments",), "fdro": ("alpha0=0.1",), "chi2_dro": ("alpha0=0.2 by hand",)}
    studies = [changed(study(label, 0.2, ["a", "b"], 5, 3), information=told[label]) for label in told]
    made = compile_leaderboard("data", [*studies, changed(study("constant", 0.9, ["a", "b"], 5, 3), ranked=False)])
    shown = heat_map(made, studies_shown(made))
    assert shown is not None
    assert {title: sorted(row.label for row in rows) for title, rows in shown.groups} == {
        "told nothing": ["erm"],
        "told environments": ["irm"],
        "told alpha0": ["chi2_dro", "fdro"],
        "references": ["constant"],
    }


def test_the_heat_map_shows_what_ranks_the_darker_the_better() -> None:
    made = compile_leaderboard("data", [study("erm", 0.2, ["a", "b"], 5, 3)], rank_by="worst_f1")
    shown = heat_map(made, studies_shown(made))
    assert shown is not None
    assert shown.title == "F1"
    assert float(shown.best) > float(shown.worst)
    ((_, (row,)),) = shown.groups
    best = max(row.cells, key=lambda cell: float(cell.text))
    assert best.ground == "#440154"


def test_of_very_many_environments_the_worst_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heat, "MOST_ENVIRONMENTS", 3)
    made = compile_leaderboard("data", [study("erm", 0.2, list("abcde"), 5, 3)])
    shown = heat_map(made, studies_shown(made))
    assert shown is not None
    assert shown.environments == ["c", "d", "e"]
    assert shown.left_out == 2
