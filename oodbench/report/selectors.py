"""What every selector would have chosen among the same trainings, as text: a terminal table, Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oodbench.board.choice import ORACLE
from oodbench.board.metrics import higher_is_better
from oodbench.report.columns import title_of
from oodbench.report.text import line, number_text
from oodbench.texts import markdown

if TYPE_CHECKING:
    from rich.table import Table

    from oodbench.board.leaderboard import Leaderboard
    from oodbench.board.row import Row

ABOUT = (
    "What each selector would have chosen among the same trainings: its {metric}, and what it loses against the "
    "oracle. All configurations were opened after the choice; no choice and no rank reads this."
)


def selectors_table(board: Leaderboard) -> Table:
    """What each selector would have chosen."""
    from rich.markup import escape
    from rich.table import Table

    caption = ABOUT.format(metric=title_of(board.metrics[0]))
    title = escape(f"{board.dataset_id}: selectors")
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    table.add_column("method", no_wrap=True)
    for name in selectors_of(board):
        table.add_column(escape(name), justify="right", no_wrap=True)
    for row in board.rows:
        if row.picks:
            table.add_row(escape(row.label), *picked_texts(board, row))
    return table


def selectors_of(board: Leaderboard) -> list[str]:
    return sorted({name for row in board.rows for name in row.picks})


def picked_texts(board: Leaderboard, row: Row) -> list[str]:
    """The first metric with each selector's choice, and what that loses against the oracle's."""
    metric = board.metrics[0]
    values = {name: pick.values.get(metric) for name, pick in row.picks.items()}
    best = values.get(ORACLE)
    sign = -1 if higher_is_better(metric) else 1
    texts = []
    for name in selectors_of(board):
        value = values.get(name)
        price = "" if value is None or best is None or name == ORACLE else f" ({sign * (value - best):+.3f})"
        texts.append(number_text(value) + price)
    return texts


def markdown_selectors(board: Leaderboard) -> list[str]:
    names = selectors_of(board)
    if not names:
        return []
    lines = ["", line(["method", *map(markdown, names)]), line(["---", *["---:"] * len(names)])]
    lines += [line([markdown(row.label), *picked_texts(board, row)]) for row in board.rows if row.picks]
    return [*lines, "", ABOUT.format(metric=title_of(board.metrics[0]))]
