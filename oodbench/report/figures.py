"""Figures of results on a dataset setting: what each test environment came to."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oodbench.errors import UserError
from oodbench.report.drawing import PAGE, Look, as_bytes, check_format, explain, looks_of, new_figure, style
from oodbench.report.selection import draw_selection
from oodbench.report.states import TILES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from oodbench.engine.data import Task
    from oodbench.study.record import ConcludedStudy

ERROR, SQUARED, SCALED_SQUARED = "test error", "test error (MSE)", "test error (MSE, scaled)"
GOLDEN = 0.618034  # its multiples, modulo 1, spread points evenly and the same way every time
MOST_PANELS = 2  # beside each other
FEW_METHODS = 15  # more are drawn closer together
MOST_POINTS = 500  # environments that are drawn as points of a method


@dataclass(frozen=True, eq=False)
class EnvironmentScores:
    """Of each method and test environment the mean over seeds, of the chosen configuration."""

    dataset_id: str
    task: Task
    frame: pd.DataFrame  # method, environment, error; accuracy and f1 for classes
    trained: tuple[str, ...]  # environments that were trained on
    seeds: str
    without: tuple[str, ...]  # methods that have no result
    scaled: bool = False  # whether errors are those of a standardised target

    @property
    def error_title(self) -> str:
        return ERROR if self.task == "classification" else SCALED_SQUARED if self.scaled else SQUARED

    @property
    def methods(self) -> list[str]:
        return list(self.frame["method"].unique())

    @property
    def looks(self) -> dict[str, Look]:
        return looks_of(self.methods)

    def of(self, method: str) -> pd.DataFrame:
        return self.frame[self.frame["method"] == method]


def write_figures(
    dataset_id: str, studies: Sequence[ConcludedStudy], folder: str | Path, format: str = "svg"
) -> list[Path]:
    """The figures that these studies on a dataset setting allow, into a folder. The same record, the same bytes."""
    check_format(format)
    scores = gather(dataset_id, studies)
    with style():
        contents = {f"{name}.{format}": as_bytes(draw(scores), format) for name, draw in drawings_of(scores).items()}
        selection = draw_selection(dataset_id, studies, scores.looks)
        if selection is not None:
            contents[f"selection.{format}"] = as_bytes(selection, format)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (Path(folder) / name).write_bytes(content)
    except OSError as error:
        raise UserError(
            f"figures cannot be written into {folder}: {error.strerror}.\n"
            "Name a folder; `oodbench figures` draws them from the record."
        ) from None
    return [Path(folder) / name for name in contents]


def drawings_of(scores: EnvironmentScores) -> dict[str, Callable[[EnvironmentScores], Figure]]:
    """What there is to draw, by name."""
    drawings: dict[str, Callable[[EnvironmentScores], Figure]] = {}
    if scores.task == "classification":
        drawings["accuracy_f1"] = draw_accuracy_f1
    drawings["distribution"] = draw_distribution
    if set(scores.frame["environment"]) <= set(TILES):
        drawings["states"] = draw_states
    return drawings


def gather(dataset_id: str, studies: Sequence[ConcludedStudy]) -> EnvironmentScores:
    import pandas as pd

    studies = sorted((study for study in studies if not study.record.repeat_of), key=lambda study: study.label)
    frames, trained = [], dict[str, None]()
    for study in studies:
        if study.results is None:
            continue
        chosen = study.results[study.results["chosen"]]
        test = chosen[chosen["part"] == "test"].groupby("environment", sort=False)
        frames.append(test[["error", "accuracy", "f1"]].mean().reset_index().assign(method=study.label))
        trained |= dict.fromkeys(chosen.loc[chosen["part"] == "train", "environment"])
    if not frames:
        raise UserError(f"no study on {dataset_id!r} has a result to draw.\n`oodbench leaderboard` shows why.")
    frame = pd.concat(frames, ignore_index=True)
    seeds = sorted({study.record.budget.seeds for study in studies if study.results is not None})
    return EnvironmentScores(
        dataset_id,
        studies[0].record.task,
        frame,
        tuple(trained),
        " to ".join(str(count) for count in dict.fromkeys((seeds[0], seeds[-1]))),
        tuple(study.label for study in studies if study.results is None),
        any(study.record.data.scaled for study in studies),
    )


def draw_accuracy_f1(scores: EnvironmentScores) -> Figure:
    """Accuracy against F1: a small point per test environment, a large one for a method's average."""
    beside = 1 if max(map(len, scores.methods)) > 24 else 2  # legend entries in a row
    figure = new_figure(PAGE, 4.9 + 0.25 * -(-len(scores.methods) // beside))
    axes = figure.add_subplot()
    for method, look in scores.looks.items():
        cells = _some(scores.of(method))
        points = axes.scatter(
            cells["f1"], cells["accuracy"], s=18, color=look.color, marker=look.marker, alpha=0.45, linewidths=0
        )
        told = zip(cells["environment"], cells["accuracy"], cells["f1"], strict=True)
        explain(points, [f"{method} on {name}: accuracy {accuracy:.3f}, F1 {f1:.3f}" for name, accuracy, f1 in told])
    for method, look in scores.looks.items():  # above all points
        mean = scores.of(method)[["f1", "accuracy"]].mean()
        average = axes.scatter(
            mean["f1"], mean["accuracy"], s=130, color=look.color, marker=look.marker, edgecolors="white",
            linewidths=1.6, label=f"{method}  ({mean['accuracy']:.3f}, {mean['f1']:.3f})", zorder=3,
        )  # fmt: skip
        explain(average, [f"{method}, average: accuracy {mean['accuracy']:.3f}, F1 {mean['f1']:.3f}"])
    axes.set_xlabel("F1")
    axes.set_ylabel("accuracy")
    figure.legend(loc="outside lower left", ncols=beside, markerscale=0.7)
    _title(figure, scores, "large markers and legend: averages (accuracy, F1)")
    return figure


def draw_distribution(scores: EnvironmentScores) -> Figure:
    """Accuracy, or error for a regression, over the test environments: a box, every environment, and the average."""
    column, best_first = ("accuracy", -1) if scores.task == "classification" else ("error", 1)
    order = sorted(scores.methods, key=lambda method: best_first * scores.of(method)[column].mean(), reverse=True)
    figure = new_figure(PAGE, 1.5 + (0.62 if len(order) <= FEW_METHODS else 0.36) * len(order))
    axes = figure.add_subplot()
    names = []
    for row, method in enumerate(order):
        look, cells = scores.looks[method], scores.of(method)
        values = cells[column].to_numpy()
        line = {"color": look.color, "linewidth": 1.2}
        axes.boxplot(
            values, positions=[row], orientation="horizontal", widths=0.6, showfliers=False, patch_artist=True,
            boxprops={"facecolor": "none", "edgecolor": look.color, "linewidth": 1.2},
            medianprops=line, whiskerprops=line, capprops=line, manage_ticks=False,
        )  # fmt: skip
        drawn = _some(cells)
        jitter = row + 0.44 * ((np.arange(len(drawn)) * GOLDEN) % 1 - 0.5)
        points = axes.scatter(drawn[column], jitter, s=14, color=look.color, alpha=0.5, linewidths=0)
        told = zip(drawn["environment"], drawn[column], strict=True)
        explain(points, [f"{method} on {name}: {column} {value:.3f}" for name, value in told])
        average = axes.scatter(
            values.mean(), row, s=70, color=look.color, marker=look.marker, edgecolors="white", zorder=3
        )
        explain(average, [f"{method}, average: {column} {values.mean():.3f}"])
        worst = int((best_first * values).argmax())
        names.append(f"{method}\nworst {cells['environment'].iloc[worst]} {values[worst]:.3f}")
    axes.set_yticks(range(len(order)), names, fontsize=8)
    axes.set_ylim(-0.6, len(order) - 0.4)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("test accuracy" if column == "accuracy" else scores.error_title)
    _title(figure, scores, "box: quartiles and median; large marker: average")
    return figure


def _some(cells: pd.DataFrame) -> pd.DataFrame:
    """So many environments that they can be drawn, spread evenly over all."""
    if len(cells) <= MOST_POINTS:
        return cells
    return cells.iloc[[place * len(cells) // MOST_POINTS for place in range(MOST_POINTS)]]


def draw_states(scores: EnvironmentScores) -> Figure:
    """Error on a map of equal tiles, a panel per method, one colour scale for all."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    methods = sorted(scores.methods, key=lambda method: scores.of(method)["error"].mean())
    columns = min(len(methods), MOST_PANELS)
    rows = -(-len(methods) // columns)
    figure = new_figure(PAGE, (2.4 if columns > 1 else 4.2) * rows + 0.7)
    panels = figure.subplots(rows, columns, squeeze=False)
    color = ScalarMappable(Normalize(scores.frame["error"].min(), scores.frame["error"].max()), "viridis")
    for number, axes in enumerate(panels.flat):
        axes.axis("off")
        if number < len(methods):
            errors = scores.of(methods[number]).set_index("environment")["error"]
            name = textwrap.fill(methods[number], 48)
            axes.set_title(
                f"{name}\nmean {errors.mean():.3f}, worst {errors.idxmax()} {errors.max():.3f}", fontsize=8.5
            )
            _draw_tiles(axes, methods[number], errors, scores.trained, color)
    figure.colorbar(color, ax=panels, label=scores.error_title, shrink=0.8, aspect=30, pad=0.02)
    _title(figure, scores, "darker: lower error; dashed: trained on; empty: no data")
    return figure


def _draw_tiles(axes: Any, method: str, errors: pd.Series[float], trained: Sequence[str], color: Any) -> None:
    from matplotlib.patches import Rectangle

    for state, (row, column) in TILES.items():
        scored = state in errors.index
        if state == "PR" and not scored:
            continue
        face: Any = color.to_rgba(errors[state]) if scored else "white"
        edge = "white" if scored else "#444444" if state in trained else "#cccccc"
        dashes = "--" if state in trained else "-"
        tile = Rectangle((column, -row), 0.94, 0.94, facecolor=face, edgecolor=edge, linestyle=dashes)
        axes.add_patch(tile)
        about = f"error {errors[state]:.3f}" if scored else "trained on" if state in trained else "no data"
        explain(tile, [f"{method} on {state}: {about}"])
        bright = scored and 0.299 * face[0] + 0.587 * face[1] + 0.114 * face[2] > 0.5
        ink = "#888888" if not scored else "#111111" if bright else "white"
        axes.text(column + 0.47, 0.6 - row, state, color=ink, ha="center", va="center", fontsize=7)
        if scored:
            axes.text(
                column + 0.47, 0.25 - row, f"{errors[state]:.2f}", color=ink, ha="center", va="center", fontsize=5.5
            )
    axes.set_xlim(-0.1, 12.1)
    axes.set_ylim(-7.1, 1.1)
    axes.set_aspect("equal")


def _title(figure: Figure, scores: EnvironmentScores, about: str) -> None:
    """What data it is, then how to read it."""
    per_line = int(figure.get_figwidth() * 15)
    environments = scores.frame["environment"].nunique()
    lines = textwrap.wrap(scores.dataset_id, per_line)
    notes = f"{environments} test environment{'s' * (environments > 1)}, means over {scores.seeds} seeds; {about}"
    if environments > MOST_POINTS:
        notes += f"; points: {MOST_POINTS} of the environments"
    if scores.without:
        notes += f"; without a result: {', '.join(scores.without)}"
    figure.suptitle("\n".join([*lines, *textwrap.wrap(notes, per_line)]), x=0.01, ha="left", fontsize=8.5)
