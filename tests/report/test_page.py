"""Pages: from made-up records whose numbers are known. tests/proofs/browser/ opens them."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oodbench.report.page
from oodbench.board.leaderboard import Leaderboard, compile_leaderboard
from oodbench.cli.main import main
from oodbench.errors import UserError
from oodbench.plugin.registry import find
from oodbench.report.cost import draw_search
from oodbench.report.drawing import style
from oodbench.report.formats import render
from oodbench.report.page import Chapter, render_page
from oodbench.report.page_data import looks_on
from oodbench.study.plan import Request, StudySpec, plan, resolve
from oodbench.study.record import Ledger
from oodbench.study.reproduce import command_for
from oodbench.study.spec import StudyOptions
from oodbench.suite.results import BoardResult, Point
from oodbench.suite.suite import BoardSpec, Curve
from pages import METHODS, NOTICE, STATES, census_board, study, with_all_opened
from studies import changed, failed

LINKED = ("board_chosen.csv", "board_sweep.csv")  # files that a reader may fetch; the page needs none
EMPTY = {"meta", "input", "br", "hr", "img", "link"}
NASTY = "<script>alert('x')</script> & \"y\" $\\frac{"


class Page(HTMLParser):
    """Elements with their attributes, and all texts; elements must close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data))

    def within(self, tag: str) -> list[str]:
        return [text for where, text in self.texts if where == tag]

    def classes(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.elements if name in (attributes.get("class") or "").split()]


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> str:
    return oodbench.write_page(census_board(), tmp_path_factory.mktemp("page") / "new").read_text()


def board(methods: Sequence[str] = ("erm", "irm", "srm"), **changes: Any) -> Leaderboard:
    studies = [study(label, 0.2 + 0.1 * place, ["a", "b"], 10, 4) for place, label in enumerate(methods)]
    return compile_leaderboard("data r=1", [changed(one, **changes) for one in studies])


def rendered(*boards: Leaderboard) -> str:
    return render_page("title", [Chapter("", boards)])


@cache
def usual() -> str:
    return rendered(board())


def test_ten_methods_on_fifty_environments_with_ten_seeds_are_less_than_three_megabytes(census: str) -> None:
    assert len(STATES) == 50
    assert len(census.encode()) < 3_000_000


def test_it_is_one_whole_page_that_loads_nothing(census: str) -> None:
    page = Page(census)
    assert not re.search(r"https?:|@import", census)
    assert set(re.findall(r"url\((.)", census)) == {"#"}
    for _, attributes in page.elements:
        for name in ("src", "href", "xlink:href", "action", "data"):
            linked = attributes.get(name) or "#"
            assert linked in LINKED or linked.startswith(("#", "data:image/png;base64,"))
    (policy,) = [one["content"] for _, one in page.elements if one.get("http-equiv") == "Content-Security-Policy"]
    assert str(policy).startswith("default-src 'none'")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {href[1:] for href in re.findall(r'(?:href="|url\()(#[^")]+)', census)} <= set(ids)


def test_it_shows_all_there_is(census: str) -> None:
    page = Page(census)
    shown = " ".join(text for _, text in page.texts)
    assert NOTICE in shown
    for label in METHODS:
        assert f"oodbench run --method {label.partition(' ')[0]} --dataset acs_travel --trials 20" in page.within("pre")
    assert "it diverged" in page.within("span")
    for text in ("800,000,000", "0.01235", "0123456789ab", "a1b2c3", "d4e5f6", "2026-01-02", "cpu", "not run"):
        assert text in page.within("td"), text
    assert "Versions: oodbench 0.1.0, torch 2.13.0, Python 3.11.7." in page.within("p")
    assert page.within("figcaption") == [
        "Accuracy against F1",
        "Distribution over test environments",
        "Error on the map of the states",
        "Critical differences: a bar joins methods that cannot be told apart",
        "Result against training time",
        "Result against gradient steps",
        "The search, trial by trial",
    ]
    assert len([one for _, one in page.elements if one.get("data-tip")]) == len(METHODS) * len(STATES)


def test_points_of_figures_explain_themselves(census: str) -> None:
    told = Page(census).within("title")
    assert sum("on NY: error" in text for text in told) == len(METHODS)
    assert sum("on NY: accuracy" in text and "F1" not in text for text in told) == len(METHODS)
    assert sum("on NY: accuracy" in text and "F1" in text for text in told) == len(METHODS)
    assert sum(", trial 20: score" in text for text in told) == len(METHODS)
    assert "erm on MA: trained on" in told


def test_tiers_and_intervals_are_in_the_table() -> None:
    page = Page(usual())
    rows = [attributes["data-tier"] for tag, attributes in page.elements if tag == "tr" and "data-tier" in attributes]
    assert (
        rows == 2 * [str(row.cells["mean_error"].tier) for row in board().rows] != 2 * [""] * 3
    )  # and of the heat map
    assert len(page.classes("interval")) == 3
    heads = [attributes for _, attributes in page.elements if "aria-sort" in attributes]
    assert {one["aria-sort"] for one in heads} == {"none"}
    assert "95 % interval" in page.within("button")


def test_what_every_selector_would_have_chosen_is_below_its_figure() -> None:
    studies = [with_all_opened(study("erm", 0.2, ["a", "b"], 3, 4)), study("irm", 0.3, ["a", "b"], 3, 4)]
    shown = rendered(compile_leaderboard("data", studies))
    heading = "What each selector would have chosen, opened after the choice"
    assert (
        shown.index("Test against validation error") < shown.index(heading) < shown.index(">Chosen hyper-parameters<")
    )
    table = shown.partition(heading)[2].partition("</table>")[0]
    lines = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]
    titles, (label, *picked) = lines  # irm did not open all
    assert label == "erm"
    of = dict(zip(titles[1:], picked, strict=True))
    error, best = re.match(r"([.\d]+) \(\+0\.003\)$", of["worst"]), float(of["oracle"])
    assert error is not None
    assert float(error[1]) == pytest.approx(best + 0.003, abs=0.0011)
    markdown = render(compile_leaderboard("data", studies, price=True), "md")
    assert f"| erm | {' | '.join(picked)} |" in markdown
    assert any("All configurations were opened after the choice" in text for text in Page(shown).within("p"))
    assert heading not in usual()


def test_a_page_against_a_method_has_words_instead_of_tiers() -> None:
    studies = board().studies
    page = Page(rendered(compile_leaderboard("data r=1", studies, against="erm")))
    assert "against erm" in page.within("button")
    assert "worse" in page.within("td")
    kinds = [
        attributes["data-kind"] for tag, attributes in page.elements if tag == "button" and "data-kind" in attributes
    ]
    assert kinds[:2] == ["text", "text"]
    assert not page.classes("first-tier")
    assert Page(usual()).classes("first-tier")


def test_the_heat_map_has_means_over_seeds() -> None:
    made = board()
    results = made.studies[0].results
    assert results is not None
    mine = results[(results["part"] == "test") & results["chosen"] & (results["environment"] == "b")]["error"]
    (tip,) = [str(a["data-tip"]) for _, a in Page(usual()).elements if "erm on b:" in (a.get("data-tip") or "")]
    assert tip == f"erm on b: error {mine.mean():.3f} ± {mine.std(ddof=1):.3f} (10 seeds)"


def test_the_search_curve_is_the_best_mean_over_seeds_so_far() -> None:
    made = board()
    with style():
        figure = draw_search(made.studies, looks_on(made))
    assert figure is not None
    for concluded, line in zip(made.studies, figure.axes[0].get_lines(), strict=True):
        assert concluded.results is not None
        validation = concluded.results[concluded.results["part"] == "validation"]
        scores = validation.groupby("configuration")["error"].mean().to_numpy()
        assert np.asarray(line.get_xdata()).tolist() == [1, 2, 3, 4]
        np.testing.assert_allclose(np.asarray(line.get_ydata()), np.minimum.accumulate(scores))


def test_the_same_record_gives_the_same_bytes() -> None:
    assert usual() == rendered(compile_leaderboard("data r=1", board().studies[::-1]))
    assert usual() != rendered(board(("erm", "irm")))


def test_everything_is_escaped() -> None:
    records = [
        changed(
            study(NASTY, 0.2, [NASTY, "b"], 2, 2),
            notice=NASTY,
            information=(NASTY,),
            choice__hparams={NASTY: NASTY},
            provenance__command=NASTY,
            provenance__git_commit=NASTY,
            ledger=Ledger(trials=2, device=NASTY),
            provenance__versions={NASTY: NASTY},
        ),
        failed(study(f"{NASTY} failed", 0.2), NASTY),
    ]
    page = Page(render_page(NASTY, [Chapter(NASTY, [compile_leaderboard(NASTY, records)])], [NASTY], NASTY))
    (script,) = page.within("script")
    assert script == (Path(oodbench.report.page.__file__).parent / "page.js").read_text()
    for tag in ("title", "h1", "h2", "th", "td", "pre", "dt", "span", "text"):
        assert any(NASTY in text for text in page.within(tag)), tag
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]


def test_one_environment_and_no_search_have_less_to_show() -> None:
    full = study("erm", 1.0, ["only"], 3, 1, "regression")
    plain = changed(full, ledger=Ledger(trials=1), choice__hparams={}, provenance__command="")
    page = Page(rendered(compile_leaderboard("data", [plain])))
    assert page.within("figcaption") == []
    assert "No hyper-parameters are recorded." in page.within("p")
    assert any(text.startswith("No command") for text in page.within("p"))
    assert Page(rendered(compile_leaderboard("data", [failed(plain, "diverged")]))).within("figcaption") == []
    searched = study("erm", 1.0, ["only"], 3, 2, "regression")
    captions = Page(rendered(compile_leaderboard("data", [searched]))).within("figcaption")
    assert captions == [
        "Result against training time",
        "Result against gradient steps",
        "The search, trial by trial",
    ]


def test_a_suite_is_one_page_with_its_curve() -> None:
    made = board(("srm (alpha0=0.1)", "srm (alpha0=0.5)"))
    curve = BoardSpec("c", "A curve", "data", ({},), ("srm",), curve=Curve("alpha0", (0.1, 0.5), 0.2, "true share"))
    points = [Point("srm", at, row.cells) for at, row in zip((0.1, 0.5), made.rows, strict=True)]
    chapters = [
        Chapter("Table 1", [board(), board()]),
        Chapter("A curve", [made], BoardResult(curve, [made], points, [])),
    ]
    page = Page(render_page("Suite", chapters, ["about it"], "oodbench run --suite mine"))
    assert page.within("h2") == ["Table 1", "A curve"]
    assert page.within("figcaption").count("Curve") == 1
    assert any("srm, alpha0=0.5: mean error" in text for text in page.within("title"))
    assert len([one for one in page.within("a") if ": data r=1" in one]) == 3
    assert "oodbench run --suite mine" in page.within("pre")


def test_a_folder_that_cannot_be_is_a_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        oodbench.write_page(board(("erm",)), tmp_path / "file")


REQUESTS = {
    "defaults": Request(["erm"], ["selection_bias"]),
    "settings": Request(
        ["irm"], ["selection_bias"], StudyOptions(settings={"r1": 1.5}, trials=3, seeds=2, seed=5, selector="mean")
    ),
    "fixed": Request(["fdro"], ["selection_bias"], StudyOptions(fix={"alpha0": "0.1,0.25"}, recipe={"steps": 30})),
    "model": Request(["fdro"], ["selection_bias"], StudyOptions(model="mlp", model_settings={"width": "8,4"})),
    "oracle": Request(["erm"], ["spurious_correlation"], StudyOptions(settings={"d": 10}, selector="oracle")),
    "choice": Request(["erm"], ["selection_bias"], StudyOptions(choose="seed", price=True)),
    "adaptive": Request(["fdro"], ["selection_bias"], StudyOptions(search="optuna", scheduler="asha", budget="90s")),
    "repeat": Request(["irm"], ["spurious_correlation"], StudyOptions(repeats=3)),
}
PRESETS = [Request([f"srm:{preset}"], ["selection_bias"]) for preset in find("method", "srm").presets]


@pytest.mark.parametrize(
    "request_", [*REQUESTS.values(), *PRESETS], ids=[*REQUESTS, *(str(p.methods[0]) for p in PRESETS)]
)
def test_the_command_does_the_same_study_again(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    study_ = plan(resolve(replace(request_, options=replace(request_.options, seeds=2))), "cpu")[-1]
    asked: list[StudySpec] = []

    def instead(driver: object, specs: list[StudySpec]) -> None:
        asked.extend(specs)
        raise UserError("stop before anything starts")

    monkeypatch.setattr("oodbench.driver.driver.Driver.drive", instead)
    monkeypatch.setattr(sys, "argv", shlex.split(command_for(study_)))
    with pytest.raises(SystemExit):
        main()
    assert plan(asked, "cpu")[-1].study_id == study_.study_id


def test_a_page_needs_a_folder(cli: Callable[..., Any]) -> None:
    done = cli("leaderboard", "selection_bias", "--format", "html")
    assert (done.code, done.err) == (2, "error: --format html writes a page into a folder.\nName one with --output.\n")
