"""A comparison as a table in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oodbench.board.comparison import WORSENED, Comparison
from oodbench.report.tables import TITLES

if TYPE_CHECKING:
    from rich.table import Table

COLORS = {"better": "green"} | dict.fromkeys(WORSENED, "red")


def comparison_table(found: Comparison, a: str, b: str) -> Table:
    from rich.markup import escape
    from rich.table import Table

    caption = (
        f"{TITLES[found.metric]}; B − A with its 95 % interval; p: Wilcoxon's signed ranks over {found.over}, adjusted "
        "by Holm over all that differ; better and worse are significant at 5 %."
    )
    table = Table(title=escape(f"A: {a}\nB: {b}"), title_justify="left", caption=caption, caption_justify="left")
    for title in ("dataset", "method"):
        table.add_column(title)
    for title in ("A", "B", "B − A", "95 % interval", "p", found.over):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("verdict")
    for row in found.rows:
        color = COLORS.get(row.verdict)
        verdict = escape(f"{row.verdict}: {row.reason}" if row.reason else row.verdict)
        table.add_row(
            escape(row.dataset_id),
            escape(row.method),
            *(_number(value, "") for value in (row.a, row.b)),
            _number(row.difference, "+"),
            f"{row.interval[0]:+.3f} to {row.interval[1]:+.3f}" if row.interval else "–",
            _number(row.p, ""),
            str(row.units or "–"),
            f"[{color}]{verdict}[/{color}]" if color else verdict,
        )
    return table


def _number(value: float | None, sign: str) -> str:
    return "–" if value is None else f"{value:{sign}.3f}"
