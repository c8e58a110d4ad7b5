"""Boards that are kept as files, read again: what a table shows, what was chosen, and who is better than whom."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oodbench.board.cells import ENDING, MethodScores, read_cells
from oodbench.board.metrics import board_metric
from oodbench.board.statistics import find_tiers
from oodbench.errors import UnknownName, UserError
from oodbench.plugin.reading import read_bounded
from oodbench.report.sweep import CHOSEN, HYPER_PARAMETER
from oodbench.study.record import CONSTANT
from oodbench.texts import from_csv_text, printable

TABLE_BYTES = 64 << 20
NIGHTLY = "nightly.json"  # of a folder that is no comparison of methods, but a baseline of the nightly job


@dataclass(frozen=True)
class Value:
    value: float
    spread: float | None


@dataclass(frozen=True)
class BoardRow:
    label: str
    at: str  # of a curve, the value of its hyper-parameter
    tier: str
    values: Mapping[str, Value]  # by metric
    told: str
    budget: str  # trials × seeds
    failure: str
    ranked: bool  # neither a reference, nor on other terms, nor failed

    @property
    def method(self) -> str:
        """Without its preset, and without in what it differs from the usual way."""
        word = self.label.partition(" ")[0]
        return word if word.startswith("sklearn:") else word.partition(":")[0]


@dataclass(frozen=True)
class ChosenRow:
    dataset_id: str
    label: str
    search: str
    hparams: Mapping[str, str]


@dataclass(frozen=True)
class DataBoard:
    """The methods on one dataset setting."""

    dataset_id: str
    rows: tuple[BoardRow, ...]
    tiers: Mapping[str, int] = field(default_factory=dict)  # by label; of the mean error, where that can be told
    worse_than: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by label, significantly


@dataclass(frozen=True)
class CommittedBoard:
    """A file of leaderboards: NAME.csv, with what is beside it."""

    folder: Path
    place: str  # of the folder, below the one that was asked for
    name: str
    title: str
    metrics: tuple[str, ...]
    curve: str  # the hyper-parameter that it varies; empty for a comparison of methods
    nightly: bool
    settings: tuple[DataBoard, ...]
    chosen: tuple[ChosenRow, ...]

    @property
    def compares(self) -> bool:
        return not self.curve and not self.nightly

    @property
    def metric(self) -> str:
        """The first that is about test environments."""
        return next((name for name in self.metrics if _aggregates(name)), self.metrics[0])


def read_committed(root: Path) -> list[CommittedBoard]:
    """All boards in a folder and below; a UserError where there is none, or a file is not what oodbench wrote."""
    if not root.is_dir():
        raise UserError(f"{root} is not a folder.\nName a folder with boards: --from leaderboards.")
    cells = sorted(root.rglob(f"*{ENDING}"))
    if not cells:
        raise UserError(f"{root} has no boards.\nWrite some: `oodbench run --suite NAME -o {root}/NAME`.")
    return [_read_board(root, path) for path in cells]


def _read_board(root: Path, cells: Path) -> CommittedBoard:
    folder, name = cells.parent, cells.name.removesuffix(ENDING)
    path = folder / f"{name}.csv"
    try:
        rows = _read_csv(path)
        metrics = tuple(key for key in rows[0] if f"{key}_spread" in rows[0] and f"{key}_low" in rows[0])
        keys = list(rows[0])
        curve = keys[2] if keys[2] not in ("tier", "against") else ""
        by_dataset: dict[str, list[BoardRow]] = {}
        for row in rows:
            by_dataset.setdefault(row["dataset_id"], []).append(_row(row, metrics, curve))
        if not metrics:
            raise ValueError("it has no metric")
    except (KeyError, IndexError, ValueError, csv.Error) as error:
        raise _not_ours(path, error) from None
    scores = [] if curve else read_cells([cells])
    return CommittedBoard(
        folder,
        folder.relative_to(root).as_posix(),
        name,
        _title(folder / f"{name}.md") or name,
        metrics,
        curve,
        (folder / NIGHTLY).exists(),
        tuple(_on_data(dataset_id, own, scores) for dataset_id, own in by_dataset.items()),
        _read_chosen(folder / f"{name}{CHOSEN}"),
    )


def _read_csv(path: Path) -> list[dict[str, str]]:
    try:
        text = read_bounded(path, TABLE_BYTES).decode("utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.\nEvery board has it beside its scores.") from None
    rows: list[dict[str, str]] = list(csv.DictReader(io.StringIO(text), strict=True))
    if any(not isinstance(value, str) for row in rows for value in row.values()):
        raise ValueError("a line has more or fewer values than the first")
    return [{key: from_csv_text(value) for key, value in row.items()} for row in rows]


def _row(row: Mapping[str, str], metrics: Sequence[str], curve: str) -> BoardRow:
    values = {
        name: Value(float(row[name]), float(row[f"{name}_spread"]) if row[f"{name}_spread"] else None)
        for name in metrics
        if row[name]
    }
    reference = row.get("reference") == "True" or row["method"] == CONSTANT
    return BoardRow(
        label=row["method"],
        at=row[curve] if curve else "",
        tier=row["tier"],
        values=values,
        told=row["information"],
        budget=f"{row['trials']} × {row['seeds']}",
        failure=row["failure"],
        ranked=not (reference or row["unequal"] or row["failure"]),
    )


def _on_data(dataset_id: str, rows: Sequence[BoardRow], scores: Sequence[MethodScores]) -> DataBoard:
    """With tiers of the mean error in test environments, whatever metric the board shows first."""
    import pandas as pd

    ranked = {row.label for row in rows if row.ranked}
    tables = {
        method.method: method.table
        for method in scores
        if method.dataset_id == dataset_id and method.table is not None and method.method in ranked
    }
    errors = pd.DataFrame({label: table.groupby("seed")["error"].mean() for label, table in tables.items()})
    if errors.empty or errors.isna().to_numpy().any():
        return DataBoard(dataset_id, tuple(rows))
    tiers = find_tiers(errors.to_numpy(float).T)  # [method, seed]
    labels = [str(label) for label in errors]
    worse = {
        label: tuple(other for other, is_worse in zip(labels, flags, strict=True) if is_worse)
        for label, flags in zip(labels, tiers.worse, strict=False)
    }
    return DataBoard(dataset_id, tuple(rows), dict(zip(labels, tiers.of or (), strict=False)), worse)


def _read_chosen(path: Path) -> tuple[ChosenRow, ...]:
    """Nothing of boards that were written before there was such a file."""
    if not path.exists():
        return ()
    try:
        return tuple(
            ChosenRow(
                row["dataset_id"],
                row["method"],
                row["search"],
                {key.removeprefix(HYPER_PARAMETER): value for key, value in row.items() if _is_chosen(key, value)},
            )
            for row in _read_csv(path)
        )
    except (KeyError, ValueError, csv.Error) as error:
        raise _not_ours(path, error) from None


def _is_chosen(key: str, value: str) -> bool:
    return key.startswith(HYPER_PARAMETER) and value != ""


def _title(path: Path) -> str:
    """The heading of the board's Markdown."""
    try:
        first = read_bounded(path).decode("utf-8", "replace").partition("\n")[0]
    except OSError:
        return ""
    return printable(html.unescape(re.sub(r"\\(.)", r"\1", first[2:]))) if first.startswith("# ") else ""


def _aggregates(metric: str) -> bool:
    try:
        return bool(board_metric(metric).aggregate)
    except UnknownName:  # of a plug-in that is not installed here
        return True


def _not_ours(path: Path, error: Exception) -> UserError:
    return UserError(
        f"{path} is not a table that oodbench wrote: {type(error).__name__}: {' '.join(str(error).split())[:80]}.\n"
        "Write the board again, or leave its folder out."
    )
