"""Figures of cost and gain of a search: the best score trial by trial, and the result against what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from oodbench.board.leaderboard import is_oracle
from oodbench.board.metrics import higher_is_better
from oodbench.report.columns import SCALED, title_of
from oodbench.report.drawing import PAGE, Look, explain, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oodbench.board.leaderboard import Leaderboard
    from oodbench.study.record import ConcludedStudy

Cost = Literal["seconds", "gradient_steps"]
COSTS: dict[Cost, str] = {
    "seconds": "seconds of training in the whole search, summed over workers",
    "gradient_steps": "gradient steps in the whole search",
}
WIDE = 10  # times the shortest: from there on a logarithmic axis


def draw_search(studies: Sequence[ConcludedStudy], looks: Mapping[str, Look]) -> Figure | None:
    """The best score so far, trial by trial; an oracle's is of test data and not drawn beside the others."""
    from matplotlib.ticker import MaxNLocator

    drawn = [study.record for study in studies if not (study.record.repeat_of or is_oracle(study))]
    scores = {record.label: sorted(record.choice.scores.items()) for record in drawn if record.choice}
    if all(len(table) < 2 for table in scores.values()):  # nothing was searched
        return None
    figure = new_figure(PAGE, 3.2 + 0.17 * len(scores))
    axes = figure.add_subplot()
    last = max(record.ledger.trials for record in drawn)
    for label, table in scores.items():
        trials = [configuration + 1 for configuration, _ in table]
        best = list(accumulate((score for _, score in table), min))
        look = looks[label]
        (line,) = axes.plot(
            trials, best, drawstyle="steps-post", color=look.color, marker=look.marker, markersize=4, label=label
        )
        explain(
            line,
            [
                f"{label}, trial {trial}: score {score:.3f}, best so far {least:.3f}"
                for trial, (_, score), least in zip(trials, table, best, strict=True)
            ],
        )
        axes.hlines(best[-1], trials[-1], last, color=look.color, linewidth=1, linestyle=":")
    axes.set_xlabel("trials")
    scaled = any(record.data.scaled for record in drawn)
    axes.set_ylabel("best validation score so far" + SCALED * scaled)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside lower left", ncols=1 if max(map(len, scores)) > 24 else 3)
    return figure


def draw_cost(board: Leaderboard, looks: Mapping[str, Look], cost: Cost) -> Figure | None:
    """The first metric, or accuracy where there is one, against what the whole search cost, with the front."""
    metric = "mean_accuracy" if "mean_accuracy" in board.metrics else board.metrics[0]
    spent = {
        study.label: float(getattr(study.record.ledger, cost)) for study in board.studies if not study.record.repeat_of
    }
    rows = [row for row in board.rows if row.cells[metric].value is not None and spent.get(row.label, 0.0) > 0]
    if not rows:
        return None
    title = title_of(metric, board.scaled)
    figure = new_figure(PAGE, 3.2 + 0.17 * len(rows))
    axes = figure.add_subplot()
    places = {row.label: (spent[row.label], row.cells[metric].value or 0.0) for row in rows}
    front = find_front({row.label: places[row.label] for row in rows if not row.reference}, higher_is_better(metric))
    if len(front) > 1:
        axes.plot(
            *zip(*(places[label] for label in front), strict=True), drawstyle="steps-post", color="#444444",
            linewidth=1.2, linestyle="--", zorder=1, label="front: none is both cheaper and better",
        )  # fmt: skip
    for row in rows:
        cell, look, (took, value) = row.cells[metric], looks[row.label], places[row.label]
        low, high = cell.intervals.get(board.over, (value, value))
        axes.vlines(took, low, high, color=look.color, linewidth=1.2)
        point = axes.scatter([took], [value], s=60, color=look.color, marker=look.marker, label=row.label, zorder=3)
        on_front = ", on the front" if row.label in front else ""
        shown = f"{took:,.1f} s" if cost == "seconds" else f"{took:,.0f} gradient steps"
        explain(point, [f"{row.label}: {title} {value:.3f} ({low:.3f} to {high:.3f}), {shown}{on_front}"])
    if max(spent[row.label] for row in rows) > WIDE * min(spent[row.label] for row in rows):
        axes.set_xscale("log", subs=(2, 5))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("{x:g}")
    axes.set_xlabel(COSTS[cost])
    axes.set_ylabel(title)
    figure.legend(loc="outside lower left", ncols=1 if max(len(row.label) for row in rows) > 24 else 3)
    return figure


def find_front(places: Mapping[str, tuple[float, float]], higher_is_better: bool) -> list[str]:
    """The labels of methods, by their cost and value, of which no other is as cheap and as good and in one of the two
    better; the cheapest first."""
    sign = -1 if higher_is_better else 1
    front: list[str] = []
    best = math.inf
    for label, (_, value) in sorted(places.items(), key=lambda item: (item[1][0], sign * item[1][1], item[0])):
        if sign * value < best:
            best = sign * value
            front.append(label)
    return front
