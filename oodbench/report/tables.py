"""A leaderboard as text: a terminal table, Markdown, CSV, JSON or LaTeX."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from oodbench.board.leaderboard import Cell, Leaderboard, Row
from oodbench.board.metrics import STABILITY

if TYPE_CHECKING:
    from rich.table import Table

LEGEND = "value ± spread (sample std over seeds)."
TIERS = (
    "Tier 1: the best mean, and all that are not significantly worse (Wilcoxon's signed ranks over {over}, 5 % after "
    "Holm's correction over all pairs); then the same among the rest. Bold (★): alone in tier 1 of its column; ≈: one "
    "of several in it."
)
WHOLE_SPACE = "n of m trials: the search space has no more than n points, and all were tried."
OUT_OF_TIME = "n of m trials: the time was over after n."
UNEQUAL = "†: another budget or other data than the other rows, so in no tier."
TOO_FEW = "Too few {over} to tell methods apart: {units}, and with so many methods it takes {needed}. No tiers."
INTERVALS = {
    "seeds": "95 % interval: of the mean over training draws, on these environments (bootstrap of seeds).",
    "environments": "95 % interval: of the mean over environments like these, for these training draws (bootstrap of "
    "environments).",
}
SEARCHES = "over searches: sample std of the mean over repeats of the whole search, on the same data."
PRICE = "price of selection: what the choice on validation data loses against the oracle, which is chosen on test data."
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


def rich_table(board: Leaderboard) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(board.dataset_id), title_justify="left", caption=legend(board), caption_justify="left")
    for title in titles_of(board):
        justify: Literal["left", "right"] = "left" if title in ("method", "told") else "right"
        table.add_column(title, justify=justify, no_wrap=title != "told")
    for row in board.rows:
        plain = replace(row, label=escape(row.label), information=escape(row.information))
        table.add_row(*texts_of(board, plain, "[bold]★ {}[/bold]"))
    return table


def ledger_table(board: Leaderboard) -> Table:
    """What each study spent."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(f"{board.dataset_id}: ledger"), title_justify="left")
    table.add_column("method", no_wrap=True)
    for title in LEDGER:
        table.add_column(title, justify="right", no_wrap=True)
    for row in board.rows:
        table.add_row(escape(row.label), *_spent(row))
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
    short = [row.budget for row in board.rows if row.budget and row.trials < row.budget.trials]
    if any(budget.seconds is None for budget in short):
        parts.append(WHOLE_SPACE)
    if any(budget.seconds is not None for budget in short):
        parts.append(OUT_OF_TIME)
    if board.shows("tier"):
        parts.append(TIERS.format(over=board.over))
    elif board.tiers.too_few:
        parts.append(TOO_FEW.format(over=board.over, units=board.tiers.units, needed=board.tiers.needed))
    if any(row.unequal for row in board.rows):
        parts.append(UNEQUAL)
    parts += [INTERVALS[board.over]] if has_interval(board) else []
    parts += [SEARCHES] if board.shows("search_spread") else []
    parts += [PRICE] if board.shows("price") else []
    if any(board.has_published(metric) for metric in board.metrics):
        parts.append(PUBLISHED)
    if set(STABILITY) & set(board.metrics):
        parts.append(STABILITY_LEGEND)
    return " ".join(parts)


def markdown_report(board: Leaderboard, ledger: bool) -> str:
    lines = [markdown_table(board), "", legend(board), *(f"\n{note}" for note in notes(board))]
    if ledger:
        lines += ["", line(["method", *LEDGER]), line(["---", *["---:"] * len(LEDGER)])]
        lines += [line([row.label, *_spent(row)]) for row in board.rows]
    return "\n".join(lines)


def markdown_table(board: Leaderboard) -> str:
    titles = titles_of(board)
    lines = [f"**{board.dataset_id}**", "", line(titles), line(["---", *["---:"] * (len(titles) - 1)])]
    lines += [line(texts_of(board, row, "**{}**")) for row in board.rows]
    return "\n".join(lines)


def line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def has_interval(board: Leaderboard) -> bool:
    return any(board.over in row.cells[board.metrics[0]].intervals for row in board.rows)


def titles_of(board: Leaderboard) -> list[str]:
    """The columns of the board as a table."""
    titles = ["method", *(["tier"] if board.shows("tier") else [])]
    for metric in board.metrics:
        titles.append(TITLES[metric])
        if metric == board.metrics[0]:
            titles += ["95 % interval"] if has_interval(board) else []
            titles += ["over searches"] if board.shows("search_spread") else []
            titles += ["price of selection"] if board.shows("price") else []
        titles += ["published"] if board.has_published(metric) else []
    return [*titles, "trials × seeds", "told", "failed"]


def texts_of(board: Leaderboard, row: Row, bold: str) -> list[str]:
    """The texts of a row, below `titles_of`."""
    first = row.cells[board.metrics[0]]
    texts = [row.label, *([str(first.tier or "–")] if board.shows("tier") else [])]
    for metric in board.metrics:
        cell = row.cells[metric]
        texts.append(_text(row, cell, bold))
        if metric == board.metrics[0]:
            texts += [interval_text(board, cell)] if has_interval(board) else []
            texts += [_searches(row, cell)] if board.shows("search_spread") else []
            texts += [f"{cell.price:+.3f}" if cell.price is not None else "–"] if board.shows("price") else []
        if board.has_published(metric):
            mark = {True: " ✓", False: " ✗", None: ""}[cell.within]
            texts.append(_number(cell.published.value, cell.published.spread) + mark if cell.published else "–")
    return [*texts, _budget(row), row.information or "nothing", _failures(row)]


def interval_text(board: Leaderboard, cell: Cell) -> str:
    low, high = cell.intervals.get(board.over, (None, None))
    return "–" if low is None else f"{low:.3f} to {high:.3f}"


def _searches(row: Row, cell: Cell) -> str:
    return "–" if cell.search_spread is None else f"± {cell.search_spread:.3f} ({row.searches})"


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
    granted = row.budget.trials if row.budget else 0
    tried = f"{row.trials} of {granted}" if row.trials < granted else f"{row.trials}"
    return f"{tried} × {row.seeds}" + (" †" if row.unequal else "")


def _failures(row: Row) -> str:
    return f"{row.failed_trainings} of {row.trials * row.seeds}" if row.failed_trainings else "0"
