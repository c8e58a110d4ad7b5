"""Names and errors of others, shown as what they are: they do not steer a terminal, a table or a spreadsheet."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.progress import Progress, TextColumn

from oodbench.board.cells import MethodScores, parse_scores, write_cells
from oodbench.board.leaderboard import Leaderboard, compile_leaderboard
from oodbench.cli.main import main
from oodbench.record.entries import entries_of
from oodbench.report.formats import render
from oodbench.report.printing import PlainConsole
from oodbench.report.tables import rich_table
from oodbench.suite.published import read_figures
from oodbench.texts import csv_text, from_csv_text, markdown, markdown_code, printable
from parcels import outcome
from studies import made_up

NASTY = "a|b <img src=x> `c` [d](e) \\| &lt; *f"
STEERING = "red\x1b[31m\x1b]0;title\x07\r\x08\x9b2J\u202eback"
HARMLESS = "red[31m]0;title2Jback"


def board(label: str, reason: str = "it diverged", dataset_id: str = "data") -> Leaderboard:
    results = outcome("erm").results
    good = made_up(label, results, trials=1, seeds=2, information=("environments",))
    bad = made_up("bad", None, reason=reason)
    return compile_leaderboard(dataset_id, [good, bad])


def test_a_table_of_markdown_has_the_names_as_they_are() -> None:
    text = render(board(NASTY, f"it said {NASTY}", NASTY), "md", ledger=True)
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    inline = [token for token in tokens if token.type == "inline"]
    kinds = {child.type for token in inline for child in token.children or []}
    assert not kinds & {"html_inline", "code_inline", "link_open", "image"}
    shown = ["".join(child.content for child in token.children or []) for token in inline]
    assert shown.count(NASTY) == 3  # the title, the table and the ledger
    assert f"bad: it said {NASTY}" in shown
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {token.type for token in tokens} >= {"table_open", "td_open"}
    assert len(rows) == 8


def test_the_notes_in_mlflow_have_the_names_as_they_are() -> None:
    study = outcome(NASTY, study_id="id", dataset_id=NASTY, dataset=NASTY, notice=NASTY)
    entries = entries_of(study.record, study.results, "id")
    for note in (entries.parent.tags["mlflow.note.content"], entries.experiment_tags["mlflow.note.content"]):
        tokens = MarkdownIt("commonmark", {"html": True}).parse(note)
        children = [child for token in tokens if token.type == "inline" for child in token.children or []]
        assert not {child.type for child in children} & {"html_inline", "link_open", "image"}
        assert NASTY in "".join(child.content for child in children)


@given(st.text())
def test_code_in_markdown_is_what_it_was(text: str) -> None:
    plain = " ".join(printable(text).split())
    tokens = MarkdownIt("commonmark").parse(f"run {markdown_code(plain)}")
    code = [child.content for token in tokens for child in token.children or [] if child.type == "code_inline"]
    assert code == [plain] or not plain


@given(st.text())
def test_any_text_is_one_cell(text: str) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(f"| a | b |\n| --- | --- |\n| {markdown(text)} | c |")
    cells = [token for token in tokens if token.type == "td_open"]
    assert len(cells) == 2
    assert "\n" not in markdown(text)


@given(st.one_of(st.text(), st.text("'=+-@\t\r0123456789.e")))
def test_texts_in_csv_come_back_and_are_no_formulas(text: str) -> None:
    quoted = csv_text(text)
    assert from_csv_text(quoted) == text
    if quoted[:1] in ("=", "@", "\t", "\r", "+", "-"):
        float(quoted)  # a number, and shown as one


@pytest.mark.parametrize("text", ["=1+1", "+SUM(A1)", "-2+3", "@cmd", "'=x", "-0.9", "plain", "-", '=HYPERLINK("x")'])
def test_cells_and_boards_in_csv(text: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"seed": [0, 1], "environment": [text, "b"], "error": [-0.5, 0.25]})
    written = write_cells([MethodScores(text, text, "regression", table)])
    (scores,) = parse_scores("a_cells.csv", written.encode())
    assert (scores.dataset_id, scores.method) == (text, text)
    assert scores.table is not None
    pd.testing.assert_frame_equal(scores.table, table)
    rows = list(csv.DictReader(io.StringIO(render(board(text), "csv"))))
    assert from_csv_text(rows[0]["method"]) == text
    assert all(cell[:1] not in "=+@-" or float(cell) for row in rows for cell in row.values() if cell)
    figures = tmp_path / "figures.csv"
    figures.write_text(
        f'board,setting,method,metric,value,spread\na,,"{csv_text(text).replace(chr(34), chr(34) * 2)}",'
    )
    with figures.open("a") as file:
        file.write("mean_error,-1.5,0.1\n")
    (figure,) = read_figures(figures, "figures.csv")
    assert (figure.method, figure.published.value) == (text, -1.5)


def test_a_terminal_is_not_steered(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    console = PlainConsole(file=terminal, force_terminal=True, width=200, color_system="standard")
    console.print(rich_table(board(STEERING)))
    console.print(STEERING, markup=False)
    console.print("[bold]ours[/bold]")
    with Progress(TextColumn("{task.description}"), console=console) as bar:
        bar.add_task(STEERING)
    shown = terminal.getvalue()
    assert shown.count(HARMLESS) >= 3
    assert "\x1b[1mours\x1b[0m" in shown
    assert not [mark for mark in ("\x1b[31m", "\x1b]", "\x07", "\x08", "\x9b", "\u202e") if mark in shown]
    assert printable(render(board(STEERING), "csv")).count(HARMLESS) == 1
    for arguments in (["leaderboard", STEERING], ["show", STEERING], ["compare", STEERING, STEERING]):
        monkeypatch.setattr("sys.argv", ["oodbench", *arguments])
        with pytest.raises(SystemExit):
            main()
    said: Any = capsys.readouterr()
    assert not [mark for mark in STEERING if not mark.isprintable() and mark in said.out + said.err]
