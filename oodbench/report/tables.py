"""A leaderboard as text: a terminal table, Markdown, CSV or JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oodbench.board import Cell, Leaderboard, Row
from oodbench.errors import UnknownName

if TYPE_CHECKING:
    from rich.table import Table

FORMATS = ("table", "md", "csv", "json")
LEGEND = (
    "value ± spread (sample std over seeds). Bold (★): ahead of every other method by more than the noise over seeds "
    "(paired t-test, 5 %); ≈: tied for the best."
)
TITLES = {
    "mean_error": "mean error",
    "std_error": "std error",
    "max_error": "max error",
    "mean_accuracy": "accuracy",
    "mean_f1": "mean F1",
    "worst_f1": "worst F1",
}


def render(board: Leaderboard, format: str) -> str:
    """Text in one of the formats that programs and papers take."""
    if format == "md":
        return _markdown(board)
    if format == "csv":
        return board.frame().to_csv(index=False).rstrip("\n")
    if format == "json":
        return json.dumps(board.as_dict(), indent=2)
    raise UnknownName("format", format, FORMATS)


def rich_table(board: Leaderboard) -> Table:
    from rich.table import Table

    table = Table(title=board.setting, title_justify="left", caption=LEGEND, caption_justify="left")
    table.add_column("method", no_wrap=True)
    for metric in board.metrics:
        table.add_column(TITLES[metric], justify="right", no_wrap=True)
    table.add_column("trials × seeds", justify="right", no_wrap=True)
    table.add_column("told")
    table.add_column("failed", justify="right")
    for row in board.rows:
        cells = [_text(row, row.cells[metric], "[bold]★ {}[/bold]") for metric in board.metrics]
        table.add_row(row.label, *cells, _budget(row), row.information or "nothing", _failures(row))
    return table


def notes(board: Leaderboard) -> list[str]:
    """What must be known of the data, and why cells are empty."""
    return [*board.notices, *(f"{row.label}: {row.failure}" for row in board.rows if row.failure)]


def _markdown(board: Leaderboard) -> str:
    titles = ["method", *(TITLES[metric] for metric in board.metrics), "trials × seeds", "told", "failed"]
    lines = [f"**{board.setting}**", "", _line(titles), _line(["---", *["---:"] * (len(titles) - 1)])]
    for row in board.rows:
        cells = [_text(row, row.cells[metric], "**{}**") for metric in board.metrics]
        lines.append(_line([row.label, *cells, _budget(row), row.information or "nothing", _failures(row)]))
    return "\n".join([*lines, "", LEGEND, *(f"\n{note}" for note in notes(board))])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _text(row: Row, cell: Cell, bold: str) -> str:
    if cell.value is None:
        return "not run" if row.failure == "not run" else "failed" if row.failure else "–"
    text = f"{cell.value:.3f}" + (f" ± {cell.spread:.3f}" if cell.spread is not None else "")
    return bold.format(text) if cell.mark == "best" else f"≈ {text}" if cell.mark == "tied" else text


def _budget(row: Row) -> str:
    return f"{row.trials} × {row.seeds}"


def _failures(row: Row) -> str:
    return f"{row.failed_trainings} of {row.trials * row.seeds}" if row.failed_trainings else "0"
