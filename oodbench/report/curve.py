"""The figure of a curve: a line per method, a band of one spread over seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oodbench.report.columns import title_of
from oodbench.report.drawing import PAGE, explain, looks_of, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oodbench.suite.results import BoardResult

MOST_PANELS = 3  # beside each other


def draw_curve(result: BoardResult) -> Figure:
    """One panel per metric. Points without a result are left out, and the table says why. To be made in `style()`."""
    metrics = result.leaderboards[0].metrics
    columns = min(len(metrics), MOST_PANELS)
    rows = -(-len(metrics) // columns)
    figure = new_figure(PAGE, 3.0 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for axes, metric in zip(panels, metrics, strict=False):
        _draw(axes, result, metric)
    for axes in panels[len(metrics) :]:
        axes.axis("off")
    return figure


def _draw(axes: Any, result: BoardResult, metric: str) -> None:
    curve = result.board.curve
    assert curve is not None
    title = title_of(metric, result.leaderboards[0].scaled)
    looks = looks_of(result.board.methods)
    for method in result.board.methods:
        cells = [(point.at, point.cells[metric]) for point in result.points if point.method == method]
        points = [(at, cell.value, cell.spread or 0.0) for at, cell in cells if cell.value is not None]
        if not points:
            continue
        at, values, spreads = (list(column) for column in zip(*points, strict=True))
        look = looks[method]
        low, high = ([value + sign * spread for value, spread in zip(values, spreads, strict=True)] for sign in (-1, 1))
        (line,) = axes.plot(at, values, color=look.color, marker=look.marker, markersize=4, label=method)
        texts = [f"{value:.3f} ± {spread:.3f}" for value, spread in zip(values, spreads, strict=True)]
        explain(
            line,
            [f"{method}, {curve.hyper_parameter}={x}: {title} {text}" for x, text in zip(at, texts, strict=True)],
        )
        axes.fill_between(at, low, high, color=look.color, alpha=0.18, linewidth=0)
    if curve.mark is not None:
        axes.axvline(curve.mark, color="#444444", linestyle="--", linewidth=1, label=curve.mark_about or None)
    axes.set_xlabel(curve.hyper_parameter)
    axes.set_ylabel(title)
    axes.legend()
