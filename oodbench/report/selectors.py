"""What every selector would have chosen among the same trainings, as texts: for the terminal, Markdown and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oodbench.board.choice import ORACLE
from oodbench.board.metrics import higher_is_better
from oodbench.report.columns import title_of
from oodbench.report.text import Plain, line, number_text
from oodbench.texts import markdown

if TYPE_CHECKING:
    from rich.table import Table

    from oodbench.board.leaderboard import Leaderboard
    from oodbench.board.row import Row

ABOUT = (
    "What each selector would have chosen among the same trainings: its {metric}, and what it loses against the "
    "oracle. All configurations were opened after the choice; no choice and no rank reads this."
)


def about_selectors(board: Leaderboard) -> str:
    return ABOUT.format(metric=title_of(board.metrics[0]))


def selector_texts(board: Leaderboard) -> Plain:
    """A column per selector, a row per method whose picks the board has."""
    names = sorted({name for row in board.rows for name in row.picks})
    return Plain(["method", *names], [(row.label, _picked(board, row, names)) for row in board.rows if row.picks])


def selectors_table(board: Leaderboard) -> Table | None:
    """For the terminal; None where the board has no picks."""
    from rich.markup import escape
    from rich.table import Table

    texts = selector_texts(board)
    if not texts.rows:
        return None
    title = escape(f"{board.dataset_id}: selectors")
    table = Table(title=title, title_justify="left", caption=about_selectors(board), caption_justify="left")
    for name in texts.titles:
        table.add_column(escape(name), justify="left" if name == texts.titles[0] else "right", no_wrap=True)
    for label, picked in texts.rows:
        table.add_row(escape(label), *picked)
    return table


def markdown_selectors(board: Leaderboard) -> list[str]:
    texts = selector_texts(board)
    if not texts.rows:
        return []
    lines = ["", line(list(map(markdown, texts.titles))), line(["---", *["---:"] * (len(texts.titles) - 1)])]
    lines += [line([markdown(label), *picked]) for label, picked in texts.rows]
    return [*lines, "", about_selectors(board)]


def _picked(board: Leaderboard, row: Row, names: list[str]) -> list[str]:
    """The first metric with each selector's choice, and what that loses against the oracle's."""
    metric = board.metrics[0]
    values = {name: pick.values.get(metric) for name, pick in row.picks.items()}
    best = values.get(ORACLE)
    sign = -1 if higher_is_better(metric) else 1
    texts = []
    for name in names:
        value = values.get(name)
        price = "" if value is None or best is None or name == ORACLE else f" ({sign * (value - best):+.3f})"
        texts.append(number_text(value) + price)
    return texts
