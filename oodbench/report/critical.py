"""The figure of critical differences: methods along the metric, and bars over those that cannot be told apart.

The tests are those of the tiers: all pairs are one family. A bar joins methods that stand next to each other, of which
no two differ significantly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oodbench.board.metrics import higher_is_better
from oodbench.report.columns import title_of
from oodbench.report.drawing import PAGE, Look, explain, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oodbench.board.leaderboard import Leaderboard
    from oodbench.board.row import Row

LINE = 0.19  # inches for a label
BAR = 0.45  # of a line, for a bar
MARGIN = 0.04  # of the width, between labels and values


def draw_critical(board: Leaderboard, looks: Mapping[str, Look]) -> Figure | None:
    """None where nothing was compared."""
    metric = board.metrics[0]
    rows = [row for row in board.rows if row.cells[metric].tier is not None]
    if len(rows) < 2:
        return None
    groups = find_groups(rows, metric)
    half = (len(rows) + 1) // 2
    depth = 1 + BAR * len(groups)
    figure = new_figure(PAGE, LINE * (depth + half) + 0.75)
    axes = figure.add_subplot()
    values = [_value(row, metric) for row in rows]
    low, high = min(values), max(values)
    margin = MARGIN * ((high - low) or 1.0)
    ends = (low - margin, high + margin)
    left, right = ends[::-1] if higher_is_better(metric) else ends  # the best are on the left
    for place, (row, value) in enumerate(zip(rows, values, strict=True)):
        on_left = place < half
        y = -depth - (place if on_left else len(rows) - 1 - place)
        _draw_label(axes, row, value, y, (left, "right") if on_left else (right, "left"), looks)
    for number, (first, last) in enumerate(groups):
        y, ends = -0.6 - BAR * number, (values[first], values[last])
        (bar,) = axes.plot(ends, [y, y], color="#444444", linewidth=3.5, solid_capstyle="butt", zorder=3)
        names = ", ".join(row.label for row in rows[first : last + 1])
        explain(bar, [f"no significant difference: {names}"])
    axes.set_xlim(left, right)
    axes.set_ylim(-depth - half, 0)
    axes.xaxis.set_ticks_position("top")
    axes.xaxis.set_label_position("top")
    axes.set_xlabel(title_of(metric, board.scaled))
    axes.set_yticks([])
    axes.grid(visible=False)
    for side, shown in (("top", True), ("bottom", False), ("left", False)):
        axes.spines[side].set_visible(shown)
    return figure


def find_groups(rows: Sequence[Row], metric: str) -> list[tuple[int, int]]:
    """The first and last places of runs of rows of which no two differ significantly, none within another."""
    apart = [set(row.cells[metric].worse_than) for row in rows]
    groups: list[tuple[int, int]] = []
    for first in range(len(rows)):
        last = first
        while last + 1 < len(rows) and not any(
            rows[inside].label in apart[last + 1] or rows[last + 1].label in apart[inside]
            for inside in range(first, last + 1)
        ):
            last += 1
        if last > first and not (groups and groups[-1][1] >= last):
            groups.append((first, last))
    return groups


def _value(row: Row, metric: str) -> float:
    value = row.cells[metric].value
    assert value is not None
    return value


def _draw_label(axes: Any, row: Row, value: float, y: float, at: tuple[float, Any], looks: Mapping[str, Look]) -> None:
    edge, side = at
    look = looks[row.label]
    axes.plot([value, value, edge], [0, y, y], color=look.color, linewidth=0.8)
    point = axes.scatter([value], [0], s=22, color=look.color, marker=look.marker, clip_on=False, zorder=4)
    explain(point, [f"{row.label}: {value:.3f}"])
    axes.annotate(
        f"{row.label}  {value:.3f}" if side == "right" else f"{value:.3f}  {row.label}",
        (edge, y), xytext=(-4 if side == "right" else 4, 0), textcoords="offset points", ha=side, va="center",
        fontsize=8, annotation_clip=False,
    )  # fmt: skip
