"""The figure of a board's selection: test against validation error of all configurations, opened after the choice."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from oodbench.board.choice import choices_of, errors_on_test, rank_correlation
from oodbench.report.drawing import PAGE, Look, explain, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from oodbench.study.record import ConcludedStudy

ABOUT = (
    "all configurations, opened after the choice: no choice and no rank reads this; large: chosen; in the legend the "
    "rank correlation of every selector's scores with the test error"
)


def draw_selection(dataset_id: str, studies: Sequence[ConcludedStudy], looks: Mapping[str, Look]) -> Figure | None:
    """A point per configuration. None where no study opened all. To be made in `style()`."""
    opened = [study for study in studies if not study.record.repeat_of and choices_of(study)]
    if not opened:
        return None
    entries = {study.label: textwrap.fill(_correlations(study), 100) for study in opened}
    lines = sum(entry.count("\n") + 1 for entry in entries.values())
    figure = new_figure(PAGE, 4.6 + 0.17 * lines)
    axes = figure.add_subplot()
    for study in opened:
        label, results, choice = study.label, study.results, study.record.choice
        assert results is not None
        assert choice is not None
        tested, look = errors_on_test(results), looks[label]
        validation = _validation_errors(results)
        for chosen in (False, True):
            numbers = [number for number in tested if number in validation and (number in choice.used) == chosen]
            points = axes.scatter(
                [validation[number] for number in numbers],
                [tested[number] for number in numbers],
                s=90 if chosen else 18,
                color=look.color,
                marker=look.marker,
                alpha=1.0 if chosen else 0.5,
                edgecolors="white" if chosen else "none",
                label=entries[label] if chosen else None,
                zorder=3 if chosen else 2,
            )
            explain(
                points,
                [
                    f"{label}, configuration {number}{' (chosen)' * chosen}: validation error "
                    f"{validation[number]:.3f}, test error {tested[number]:.3f}"
                    for number in numbers
                ],
            )
    axes.set_xlabel("mean error over validation environments")
    axes.set_ylabel("mean error over test environments")
    title = [*textwrap.wrap(dataset_id, int(PAGE * 15)), *textwrap.wrap(ABOUT, int(PAGE * 15))]
    figure.suptitle("\n".join(title), x=0.01, ha="left", fontsize=8.5)
    figure.legend(loc="outside lower left", ncols=1, markerscale=0.7, fontsize=7.5)
    return figure


def _correlations(study: ConcludedStudy) -> str:
    assert study.results is not None
    errors = errors_on_test(study.results)
    found = {name: rank_correlation(choice.scores, errors) for name, choice in sorted(choices_of(study).items())}
    told = [f"{name} {value:+.2f}" for name, value in found.items() if value is not None and name != "oracle"]
    return f"{study.label}: {', '.join(told) or 'no order to compare'}"


def _validation_errors(results: pd.DataFrame) -> dict[int, float]:
    rows = results[results["part"] == "validation"]
    means = rows.groupby(["configuration", "seed"])["error"].mean().groupby("configuration").mean()
    return {int(str(number)): float(value) for number, value in means.items()}
