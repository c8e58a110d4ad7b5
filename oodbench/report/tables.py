"""A leaderboard as text: a terminal table, Markdown, CSV, JSON or LaTeX."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from oodbench.board.leaderboard import Leaderboard
from oodbench.board.metrics import STABILITY
from oodbench.board.row import Cell, Row
from oodbench.board.statistics import Over
from oodbench.report.columns import Column, columns_of, has_interval
from oodbench.report.selectors import markdown_selectors
from oodbench.report.text import (
    ABSENT,
    cell_text,
    count_text,
    interval_text,
    left_out_text,
    line,
    number_text,
    spread_text,
    trials_text,
)
from oodbench.texts import markdown

if TYPE_CHECKING:
    from rich.table import Table

LEGEND = "value ± spread (sample std over seeds)."
WEIGHTED = {
    "equal": "Means count every test environment equally.",
    "rows": "Means count every test environment by its rows.",
}
SCALED = (
    "(scaled): of the standardised target, whose training rows have mean 0 and variance 1; the mean squared error of "
    "their mean is about 1 in training."
)
VALIDATION = "validation error: the mean error of the chosen configuration over the validation environments."
TIERS = (
    "Tier 1: all methods that are not significantly worse than another (moderated paired t-test over {over}, 5 % "
    "level, Holm correction over all pairs); the next tiers are formed in the same way from the rest. Bold (★): the "
    "only method of tier 1 that may be the best of its column; ≈: one of several (one-sided against the others, 5 % "
    "for each method)."
)
AGAINST = (
    "Against {against}: better or worse if the difference is significant (moderated paired t-test over {over}, 5 % "
    "level, Holm correction over these comparisons only)."
)
WHOLE_SPACE = "n of m trials: the search space has only n points, and all were tried."
OUT_OF_TIME = "n of m trials: the time budget ended after n."
HALVED = (
    "n → m trials: halving began n configurations and trained m to the end, for the gradient steps of {trials} trials."
)
UNEQUAL = "†: the budget, the data or the choice differ from those of the other rows, so the row is in no tier."
REFERENCE = "‡: a reference, shown and in no tier."
COLLAPSED = "=‡: no better than the reference on any seed or environment, and no worse: it learned nothing."
TOO_FEW = "Too few {over} to tell methods apart: {units}, and a test needs {missing} more."
INTERVALS = {
    "seeds": "95 % interval: of the mean over training draws, on these environments (bootstrap over seeds).",
    "environments": "95 % interval: of the mean over environments like these, for these training draws (bootstrap over "
    "environments).",
}
SEARCHES = "over searches: sample std of the mean over repetitions of the whole search on the same data."
WITHOUT_SEED = (
    "seed left out: the mean, where the configuration of each seed is chosen on the other seeds; ± does not have the "
    "luck of the choice."
)
PRICE = "price of selection: what selection on validation data loses against the oracle, which selects on test data."
PUBLISHED = "✓: within the published ±; ✗: outside it."
STABILITY_LEGEND = (
    "DS, ODS: distributional and out-of-distribution stability of the chosen models, in nats; lower is more stable."
)
LEDGER = ("trainings", "gradient steps", "row visits", "seconds", "device")


def rich_table(board: Leaderboard) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        title=escape(board.dataset_id), title_justify="left", caption=escape(legend(board)), caption_justify="left"
    )
    for title in titles_of(board):
        justify: Literal["left", "right"] = "left" if title in ("method", "told") else "right"
        table.add_column(escape(title), justify=justify, no_wrap=title != "told")
    for row in board.lines:
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
    return [*counts, f"{spent.seconds:,.1f}", spent.device or ABSENT]


def notes(board: Leaderboard) -> list[str]:
    """Notices about the data, why cells are empty, and how the terms of rows differ."""
    failures = [f"{row.label}: {row.failure}" for row in board.rows if row.failure]
    return [*board.notices, *failures, *remarks(board)]


def remarks(board: Leaderboard) -> list[str]:
    """What is to be said of the data and of rows besides notices and failures, which pages show in their places."""
    left_out = [study.record.data.left_out for study in board.studies if study.record.data.left_out]
    return [
        *dict.fromkeys(map(left_out_text, left_out)),
        *(f"† {row.label}: {row.unequal}" for row in board.rows if row.unequal),
        *_missing_values(board),
    ]


def _missing_values(board: Leaderboard) -> list[str]:
    """Why cells have no value: a line for each reason."""
    rows: dict[str, list[str]] = {}
    metrics: dict[str, dict[str, None]] = {}
    for row in board.rows:
        for metric, reason in row.missing.items():
            rows.setdefault(reason, []).append(row.label)
            metrics.setdefault(reason, {})[metric] = None
    return [
        f"no {', '.join(metrics[reason])} for {', '.join(dict.fromkeys(labels))}: {reason}"
        for reason, labels in rows.items()
    ]


def legend(board: Leaderboard) -> str:
    parts = [LEGEND, WEIGHTED[board.weights]]
    parts += [SCALED] if board.scaled else []
    parts += [VALIDATION] if any(row.validation.value is not None for row in board.rows) else []
    short = [row.budget for row in board.rows if row.budget and row.trials < row.budget.trials]
    if any(budget.seconds is None for budget in short):
        parts.append(WHOLE_SPACE)
    if any(budget.seconds is not None for budget in short):
        parts.append(OUT_OF_TIME)
    halved = {row.budget.trials for row in board.rows if row.budget and len(row.ledger.rungs) > 1}
    parts += [HALVED.format(trials=" or ".join(map(str, sorted(halved))))] if halved else []
    if board.shows("tier"):
        parts.append(TIERS.format(over=board.over))
    if board.shows("side"):
        parts.append(AGAINST.format(over=board.over, against=board.against))
    if board.tiers.too_few:
        parts.append(TOO_FEW.format(over=board.over, units=board.tiers.units, missing=board.tiers.missing))
    if any(row.unequal for row in board.rows):
        parts.append(UNEQUAL)
    parts += [REFERENCE] if any(row.reference for row in board.lines) else []
    parts += [COLLAPSED] if any(row.collapsed for row in board.rows) else []
    parts += [INTERVALS[board.over]] if has_interval(board) else []
    parts += [SEARCHES] if board.shows("search_spread") else []
    parts += [WITHOUT_SEED] if board.shows("without_seed") else []
    parts += [PRICE] if board.shows("price") else []
    if any(board.has_published(metric) for metric in board.metrics):
        parts.append(PUBLISHED)
    if set(STABILITY) & set(board.metrics):
        parts.append(STABILITY_LEGEND)
    return " ".join(parts)


def markdown_report(board: Leaderboard, ledger: bool) -> str:
    lines = [markdown_table(board), "", markdown(legend(board)), *(f"\n{markdown(note)}" for note in notes(board))]
    lines += markdown_selectors(board)
    if ledger:
        lines += ["", line(["method", *LEDGER]), line(["---", *["---:"] * len(LEDGER)])]
        lines += [line([markdown(row.label), *_spent(row)]) for row in board.rows]
    return "\n".join(lines)


def markdown_table(board: Leaderboard) -> str:
    titles = titles_of(board)
    heads = [markdown(title) for title in titles]
    lines = [f"**{markdown(board.dataset_id)}**", "", line(heads), line(["---", *["---:"] * (len(titles) - 1)])]
    plain = [replace(row, label=markdown(row.label), information=markdown(row.information)) for row in board.lines]
    lines += [line(texts_of(board, row, "**{}**")) for row in plain]
    return "\n".join(lines)


def titles_of(board: Leaderboard) -> list[str]:
    """The columns of the board as a table."""
    return [column.title for column in columns_of([board])]


def texts_of(board: Leaderboard, row: Row, bold: str) -> list[str]:
    """The texts of a row, below `titles_of`."""
    return [_text(column, board, row, bold) for column in columns_of([board])]


def _text(column: Column, board: Leaderboard, row: Row, bold: str) -> str:
    if not column.metric:
        return _term(column, row)
    cell = row.cells[column.metric]
    match column.content:
        case "tier":
            return claim_text(cell, board.over, ABSENT)
        case "interval":
            return interval_text(cell.intervals.get(board.over))
        case "searches":
            return ABSENT if cell.search_spread is None else f"± {cell.search_spread:.3f} ({row.searches})"
        case "without_seed":
            return number_text(cell.without_seed)
        case "price":
            return number_text(cell.price, "+.3f")
        case "published":
            published = cell.published
            return spread_text(published.value, published.spread) + within_mark(cell) if published else ABSENT
    return _value(row, cell, bold)


def _term(column: Column, row: Row) -> str:
    """Of a column that is about the row as a whole."""
    match column.content:
        case "validation":
            return cell_text(row.validation)
        case "budget":
            return _budget(row) if row.run_id or row.budget or row.failure else ABSENT
        case "information":
            return row.information or "nothing"
        case "failures":
            trainings = row.ledger.trainings or row.trials * row.seeds
            return f"{row.failed_trainings} of {trainings}" if row.failed_trainings else "0"
    return row.shown_label


def claim_text(cell: Cell, over: Over, absent: str) -> str:
    """The tier, or how the method compares with the one that the board is against; or how many more seeds it takes."""
    if cell.missing:
        return count_text(cell.missing, f"more {over.removesuffix('s')}")
    return cell.side or str(cell.tier or absent)


def within_mark(cell: Cell) -> str:
    """Whether the value is within the published ±."""
    return {True: " ✓", False: " ✗", None: ""}[cell.within]


def _value(row: Row, cell: Cell, bold: str) -> str:
    if cell.value is None:
        if row.budget is None and row.failure:  # nothing is known of it
            return row.failure.partition(":")[0]
        return "failed" if row.failure else ABSENT
    text = cell_text(cell)
    return bold.format(text) if cell.mark == "best" else f"≈ {text}" if cell.mark == "tied" else text


def _budget(row: Row) -> str:
    granted = row.budget.trials if row.budget else 0
    tried = f"{row.trials} of {granted}" if row.trials < granted else trials_text(row.trials, row.ledger)
    return f"{tried} × {row.seeds}" + (" †" if row.unequal else "")
