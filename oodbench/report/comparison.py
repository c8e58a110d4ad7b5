"""A comparison as a table in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oodbench.board.comparison import WORSENED, Comparison
from oodbench.report.columns import title_of
from oodbench.report.text import ABSENT, interval_text, number_text

if TYPE_CHECKING:
    from rich.table import Table

COLORS = {"better": "green"} | dict.fromkeys(WORSENED, "red")


def comparison_table(comparison: Comparison, a: str, b: str) -> Table:
    from rich.markup import escape
    from rich.table import Table

    caption = (
        f"{title_of(comparison.metric)}; B − A with its 95 % interval; p: moderated paired t-test over "
        f"{comparison.over}, Holm correction over all that differ; better and worse are significant at 5 %."
    )
    table = Table(title=escape(f"A: {a}\nB: {b}"), title_justify="left", caption=caption, caption_justify="left")
    for title in ("dataset", "method"):
        table.add_column(title)
    for title in ("A", "B", "B − A", "95 % interval", "p", comparison.over):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("verdict")
    for row in comparison.rows:
        color = COLORS.get(row.verdict)
        verdict = escape(f"{row.verdict}: {row.reason}" if row.reason else row.verdict)
        table.add_row(
            escape(row.dataset_id),
            escape(row.method),
            *(number_text(value) for value in (row.a, row.b)),
            number_text(row.difference, "+.3f"),
            interval_text(row.interval, "+.3f"),
            number_text(row.p),
            str(row.units or ABSENT),
            f"[{color}]{verdict}[/{color}]" if color else verdict,
        )
    return table
