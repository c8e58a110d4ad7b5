"""Figures that others published, to stand beside ours: a CSV file with a row per board, setting, method and metric."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oodbench.board.leaderboard import Leaderboard
from oodbench.board.row import Published
from oodbench.errors import UserError
from oodbench.plugin.dataset import Dataset
from oodbench.plugin.reading import read_bounded
from oodbench.settings.fields import configure, split_assignments
from oodbench.texts import from_csv_text

COLUMNS = ("board", "setting", "method", "metric", "value", "spread")


@dataclass(frozen=True)
class Figure:
    board: str
    settings: Mapping[str, str]
    method: str
    metric: str
    published: Published
    where: str  # file and line


def read_figures(path: Path, shown: str) -> list[Figure]:
    try:
        reader = csv.DictReader(io.StringIO(read_bounded(path).decode(), newline=""))
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise UserError(f"{shown} does not have the right columns.\nThey must be: {','.join(COLUMNS)}.")
        return [_figure(_plain(row), f"{shown}, line {reader.line_num}") for row in reader]
    except (OSError, ValueError, csv.Error) as error:  # a ValueError is of no text, or of a path that is none
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{shown} cannot be read: {reason}.\nThe path is relative to the suite's folder.") from None


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """With the texts as they were before a CSV file quoted them."""
    return {name: from_csv_text(value) if isinstance(value, str) else value for name, value in row.items()}


def _figure(row: Mapping[str, str], where: str) -> Figure:
    try:
        published = Published(float(row["value"]), float(row["spread"]) if row["spread"] else None)
    except (ValueError, TypeError):
        raise UserError(
            f"{where}: value and spread must be numbers, not {row['value']!r} and {row['spread']!r}."
        ) from None
    try:
        settings = split_assignments(row["setting"].split(), "setting")
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return Figure(row["board"], settings, row["method"], row["metric"], published, where)


def check_figures(figures: Sequence[Figure], dataset: type[Dataset], settings: Sequence[Mapping[str, Any]]) -> None:
    """Every figure must belong to a setting of its board: a typo would only hide it."""
    configured = [configure(dataset, values, "dataset") for values in settings]
    for figure in figures:
        try:
            fits = configure(dataset, figure.settings, "setting") in configured
        except UserError as error:
            raise UserError(f"{figure.where}: {error}") from None
        if not fits:
            text = " ".join(f"{name}={value}" for name, value in figure.settings.items())
            raise UserError(f"{figure.where}: board {figure.board!r} has no setting {text!r}.")


def stand_beside(
    board: Leaderboard, figures: Sequence[Figure], dataset: Dataset, methods: Mapping[str, str]
) -> Leaderboard:
    """The board with the figures for this setting in its cells; `methods` are the methods of its labels."""
    published = {
        (figure.method, figure.metric): figure.published
        for figure in figures
        if configure(type(dataset), figure.settings, "setting") == dataset
    }
    rows = [
        replace(
            row,
            cells={
                metric: replace(cell, published=published.get((methods[row.label], metric)))
                for metric, cell in row.cells.items()
            },
        )
        for row in board.rows
    ]
    return replace(board, rows=rows)
