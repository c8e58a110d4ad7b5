"""Methods by environments, as a page shows them: coloured, in groups, and no wider than a reader can take in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oodbench.board.metrics import board_metric, cells_of
from oodbench.report.columns import title_of
from oodbench.report.text import ABSENT

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.board.leaderboard import Leaderboard
    from oodbench.study.record import ConcludedStudy

MOST_ENVIRONMENTS = 200  # of more, those with the worst values


@dataclass(frozen=True)
class Heat:
    """A value and its colour."""

    text: str
    ground: str
    ink: str
    about: str


@dataclass(frozen=True)
class HeatRow:
    label: str
    tier: int | None
    words: str  # that a search finds it by
    cells: list[Heat]


@dataclass(frozen=True)
class HeatMap:
    title: str
    environments: list[str]
    groups: list[tuple[str, list[HeatRow]]]  # by what the methods were told; a single group has no title
    best: str
    worst: str
    left_out: int  # environments that are not shown


def heat_map(board: Leaderboard, studies: Sequence[ConcludedStudy]) -> HeatMap | None:
    """Means over seeds of what the board ranks by, one colour scale for all; the error, where that is no such value."""
    ranked = board_metric(board.metrics[0])
    column = ranked.column if ranked.aggregate else "error"
    higher = board_metric(f"mean_{column}").higher_is_better
    tables = {study.label: cells_of(study.results, column) for study in studies if study.results is not None}
    means = _means(tables)
    if means.isna().to_numpy().all():  # also if there are none
        return None
    shown = _shown(means, higher)
    means, left_out = means[shown], means.shape[1] - len(shown)
    values = means.to_numpy(float)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    name = title_of(column, board.scaled)
    rows = {
        label: _cells(label, dict(zip(shown, of_label, strict=True)), tables[label], (low, high), higher, name)
        for label, of_label in zip(means.index, values, strict=True)
    }
    tiers = {row.label: row.cells[board.metrics[0]].tier for row in board.rows}
    told: dict[str, list[HeatRow]] = {}
    for study in studies:
        if study.label in rows:
            group = _group(study)
            words = f"{study.label} {study.record.told or 'nothing'}"
            told.setdefault(group, []).append(HeatRow(study.label, tiers.get(study.label), words, rows[study.label]))
    best, worst = (high, low) if higher else (low, high)
    groups = list(told.items()) if len(told) > 1 else [("", rows) for rows in told.values()]
    return HeatMap(name, shown, groups, f"{best:.3f}", f"{worst:.3f}", left_out)


def _means(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    means = {label: table.mean() for label, table in tables.items()}
    environments = list(dict.fromkeys(name for mean in means.values() for name in mean.index))
    return pd.DataFrame(means, index=environments).T


def _shown(means: pd.DataFrame, higher: bool) -> list[str]:
    if means.shape[1] <= MOST_ENVIRONMENTS:
        return list(means.columns)
    worst = means.mean().sort_values(ascending=higher, kind="stable").index[:MOST_ENVIRONMENTS]
    return [name for name in means.columns if name in set(worst)]


def _group(study: ConcludedStudy) -> str:
    """Methods that were told alike, whatever the values."""
    if not study.record.ranked:
        return "references"
    names = dict.fromkeys(part.partition("=")[0] for part in study.record.information)
    return f"told {', '.join(names)}" if names else "told nothing"


def _cells(
    label: str, means: Mapping[str, float], table: pd.DataFrame, scale: tuple[float, float], higher: bool, name: str
) -> list[Heat]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    low, high = scale
    badness = (np.array(list(means.values())) - low) / ((high - low) or 1.0)
    colours = colormaps["viridis"](1 - badness if higher else badness)
    spreads, counts = table.std(ddof=1), table.count()
    cells = []
    for (environment, value), (red, green, blue, _) in zip(means.items(), colours, strict=True):
        if np.isnan(value):  # not a number: the method has no result here
            about = f"{label} has no {name} on {environment}"
            cells.append(Heat(ABSENT, "transparent", "inherit", about))
            continue
        seeds = int(counts[environment])
        spread = f" ± {spreads[environment]:.3f}" if seeds > 1 else ""
        about = f"{label} on {environment}: {name} {value:.3f}{spread} ({seeds} {'seeds' if seeds > 1 else 'seed'})"
        bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
        cells.append(Heat(_short(float(value)), to_hex((red, green, blue)), "#111" if bright else "#fff", about))
    return cells


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if 0 <= value < 1 else f"{value:.2f}"
