"""A leaderboard as text: a terminal table, Markdown, CSV or JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oodbench.board import Cell, Leaderboard, Row
from oodbench.errors import UnknownName
from oodbench.metrics import STABILITY

if TYPE_CHECKING:
    from rich.table import Table

FORMATS = ("table", "md", "csv", "json")
LEGEND = (
    "value ± spread (sample std over seeds). Bold (★): ahead of every other method by more than the noise over seeds "
    "(paired t-test, 5 %); ≈: tied for the best."
)
WHOLE_SPACE = "n of m trials: the search space has no more than n points, and all were tried."
UNEQUAL = "†: another budget or other data than the other rows, so neither bold nor tied."
PUBLISHED = "✓: within the published ±; ✗: outside it."
STABILITY_LEGEND = (
    "DS, ODS: distributional and out-of-distribution stability of the chosen models, in nats; smaller is stabler."
)
TITLES = {
    "mean_error": "mean error",
    "std_error": "std error",
    "max_error": "max error",
    "mean_accuracy": "test accuracy",
    "train_accuracy": "train accuracy",
    "mean_f1": "mean F1",
    "worst_f1": "worst F1",
    "validation_stability": "validation DS",
    "test_stability": "test DS",
    "max_test_stability": "max test DS",
    "ods": "ODS",
    "max_ods": "max ODS",
}


LEDGER = ("trainings", "gradient steps", "row visits", "seconds", "device")


def render(board: Leaderboard, format: str, ledger: bool = False) -> str:
    """Text in one of the formats that programs and papers take."""
    if format == "md":
        return _markdown(board, ledger)
    if format == "csv":
        return board.frame(ledger).to_csv(index=False).rstrip("\n")
    if format == "json":
        return json.dumps(board.as_dict(), indent=2)
    raise UnknownName("format", format, FORMATS)


def rich_table(board: Leaderboard) -> Table:
    from rich.table import Table

    table = Table(title=board.setting, title_justify="left", caption=legend(board), caption_justify="left")
    table.add_column("method", no_wrap=True)
    for title in _metric_titles(board):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("trials × seeds", justify="right", no_wrap=True)
    table.add_column("told")
    table.add_column("failed", justify="right")
    for row in board.rows:
        cells = _metric_cells(board, row, "[bold]★ {}[/bold]")
        table.add_row(row.label, *cells, _budget(row), row.information or "nothing", _failures(row))
    return table


def ledger_table(board: Leaderboard) -> Table:
    """What each study spent."""
    from rich.table import Table

    table = Table(title=f"{board.setting}: ledger", title_justify="left")
    table.add_column("method", no_wrap=True)
    for title in LEDGER:
        table.add_column(title, justify="right", no_wrap=True)
    for row in board.rows:
        table.add_row(row.label, *_spent(row))
    return table


def _spent(row: Row) -> list[str]:
    spent = row.ledger
    counts = [f"{count:,}" for count in (spent.trainings, spent.gradient_steps, spent.row_visits)]
    return [*counts, f"{spent.seconds:,.1f}", spent.device or "–"]


def notes(board: Leaderboard) -> list[str]:
    """What must be known of the data, why cells are empty, and in what rows are unequal."""
    return [
        *board.notices,
        *(f"{row.label}: {row.failure}" for row in board.rows if row.failure),
        *(f"† {row.label}: {row.unequal}" for row in board.rows if row.unequal),
    ]


def legend(board: Leaderboard) -> str:
    parts = [LEGEND]
    if any(row.trials < row.ledger.trials_granted for row in board.rows):
        parts.append(WHOLE_SPACE)
    if any(row.unequal for row in board.rows):
        parts.append(UNEQUAL)
    if any(board.has_published(metric) for metric in board.metrics):
        parts.append(PUBLISHED)
    if set(STABILITY) & set(board.metrics):
        parts.append(STABILITY_LEGEND)
    return " ".join(parts)


def _markdown(board: Leaderboard, ledger: bool) -> str:
    lines = [markdown_table(board), "", legend(board), *(f"\n{note}" for note in notes(board))]
    if ledger:
        lines += ["", line(["method", *LEDGER]), line(["---", *["---:"] * len(LEDGER)])]
        lines += [line([row.label, *_spent(row)]) for row in board.rows]
    return "\n".join(lines)


def markdown_table(board: Leaderboard) -> str:
    titles = ["method", *_metric_titles(board), "trials × seeds", "told", "failed"]
    lines = [f"**{board.setting}**", "", line(titles), line(["---", *["---:"] * (len(titles) - 1)])]
    for row in board.rows:
        cells = _metric_cells(board, row, "**{}**")
        lines.append(line([row.label, *cells, _budget(row), row.information or "nothing", _failures(row)]))
    return "\n".join(lines)


def line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _metric_titles(board: Leaderboard) -> list[str]:
    return [
        title
        for metric in board.metrics
        for title in (TITLES[metric], *(["published"] if board.has_published(metric) else []))
    ]


def _metric_cells(board: Leaderboard, row: Row, bold: str) -> list[str]:
    texts = []
    for metric in board.metrics:
        cell = row.cells[metric]
        texts.append(_text(row, cell, bold))
        if board.has_published(metric):
            mark = {True: " ✓", False: " ✗", None: ""}[cell.within]
            texts.append(_number(cell.published.value, cell.published.spread) + mark if cell.published else "–")
    return texts


def cell_text(cell: Cell) -> str:
    return "–" if cell.value is None else _number(cell.value, cell.spread)


def _number(value: float, spread: float | None) -> str:
    return f"{value:.3f}" + (f" ± {spread:.3f}" if spread is not None else "")


def _text(row: Row, cell: Cell, bold: str) -> str:
    if cell.value is None:
        return "not run" if row.failure == "not run" else "failed" if row.failure else "–"
    text = cell_text(cell)
    return bold.format(text) if cell.mark == "best" else f"≈ {text}" if cell.mark == "tied" else text


def _budget(row: Row) -> str:
    granted = row.ledger.trials_granted
    tried = f"{row.trials} of {granted}" if row.trials < granted else f"{row.trials}"
    return f"{tried} × {row.seeds}" + (" †" if row.unequal else "")


def _failures(row: Row) -> str:
    return f"{row.failed_trainings} of {row.trials * row.seeds}" if row.failed_trainings else "0"
