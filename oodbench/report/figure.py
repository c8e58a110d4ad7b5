"""The figure of a curve, as SVG: a line per method, a band of one spread over seeds."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from oodbench.report.tables import TITLES

if TYPE_CHECKING:
    from oodbench.suiteresult import BoardResult

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # told apart by everybody (Okabe, Ito)
MARKERS = "osD^vP"
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "oodbench",  # else the ids in the file are random
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def draw_curve(result: BoardResult) -> str:
    """One panel per metric. Points without a result are left out, and the table says why."""
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    metrics = result.leaderboards[0].metrics
    text = io.StringIO()
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(4.6 * len(metrics), 3.2), layout="constrained")
        FigureCanvasSVG(figure)
        for axes, metric in zip(figure.subplots(1, len(metrics), squeeze=False)[0], metrics, strict=True):
            _draw(axes, result, metric)
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _draw(axes: Any, result: BoardResult, metric: str) -> None:
    curve = result.board.curve
    assert curve is not None
    for number, method in enumerate(result.board.methods):
        found = [(point.at, point.cells[metric]) for point in result.points if point.method == method]
        there = [(at, cell.value, cell.spread or 0.0) for at, cell in found if cell.value is not None]
        if not there:
            continue
        at, values, spreads = (list(column) for column in zip(*there, strict=True))
        color = COLORS[number % len(COLORS)]
        low, high = ([value + sign * one for value, one in zip(values, spreads, strict=True)] for sign in (-1, 1))
        axes.plot(at, values, color=color, marker=MARKERS[number % len(MARKERS)], markersize=4, label=method)
        axes.fill_between(at, low, high, color=color, alpha=0.18, linewidth=0)
    if curve.mark is not None:
        axes.axvline(curve.mark, color="#444444", linestyle="--", linewidth=1, label=curve.mark_about or None)
    axes.set_xlabel(curve.hyper_parameter)
    axes.set_ylabel(TITLES[metric])
    axes.legend()
