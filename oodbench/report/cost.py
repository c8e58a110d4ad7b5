"""Figures of cost and gain of a search: the best score trial by trial, and the result against training time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from oodbench.report.columns import TITLES
from oodbench.report.drawing import PAGE, Look, explain, new_figure
from oodbench.study.selectors import select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oodbench.board.leaderboard import Leaderboard
    from oodbench.study.record import StudyRecord

WIDE = 10  # times the shortest: from there on a logarithmic axis


def trial_scores(record: StudyRecord) -> dict[int, float]:
    """The score that each trial was judged by; trials that did not finish on every seed have none."""
    assert record.results is not None
    part = "test" if record.selector == "oracle" else "validation"
    judged = record.results[record.results["part"] == part]
    return select(judged, record.selector, record.seeds).scores if len(judged) else {}


def draw_search(records: Sequence[StudyRecord], looks: Mapping[str, Look]) -> Figure | None:
    """The best score so far, trial by trial; an oracle's is of test data and not drawn beside the others."""
    from matplotlib.ticker import MaxNLocator

    searched = [
        record
        for record in records
        if record.results is not None and not record.repeat_of and record.selector != "oracle"
    ]
    scores = {record.label: sorted(trial_scores(record).items()) for record in searched}
    scores = {label: table for label, table in scores.items() if table}
    if all(len(table) < 2 for table in scores.values()):  # nothing was searched
        return None
    figure = new_figure(PAGE, 3.2 + 0.17 * len(scores))
    axes = figure.add_subplot()
    last = max(record.trials for record in searched)
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
    axes.set_ylabel("best validation score so far")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside lower left", ncols=1 if max(map(len, scores)) > 24 else 3)
    return figure


def draw_time(board: Leaderboard, looks: Mapping[str, Look]) -> Figure | None:
    """The first metric, or accuracy where there is one, against the seconds of all trainings of the search."""
    metric = "mean_accuracy" if "mean_accuracy" in board.metrics else board.metrics[0]
    seconds = {record.label: record.ledger.seconds for record in board.records if not record.repeat_of}
    rows = [row for row in board.rows if row.cells[metric].value is not None and seconds.get(row.label, 0.0) > 0]
    if not rows:
        return None
    figure = new_figure(PAGE, 3.2 + 0.17 * len(rows))
    axes = figure.add_subplot()
    for row in rows:
        cell, look, took = row.cells[metric], looks[row.label], seconds[row.label]
        assert cell.value is not None
        low, high = cell.intervals.get(board.over, (cell.value, cell.value))
        axes.vlines(took, low, high, color=look.color, linewidth=1.2)
        point = axes.scatter(
            [took], [cell.value], s=60, color=look.color, marker=look.marker, label=row.label, zorder=3
        )
        explain(point, [f"{row.label}: {TITLES[metric]} {cell.value:.3f} ({low:.3f} to {high:.3f}), {took:,.1f} s"])
    if max(seconds[row.label] for row in rows) > WIDE * min(seconds[row.label] for row in rows):
        axes.set_xscale("log", subs=(2, 5))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("{x:g}")
    axes.set_xlabel("seconds of training in the whole search, summed over workers")
    axes.set_ylabel(TITLES[metric])
    figure.legend(loc="outside lower left", ncols=1 if max(len(row.label) for row in rows) > 24 else 3)
    return figure
