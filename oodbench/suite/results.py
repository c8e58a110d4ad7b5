"""The boards that the studies of a suite come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oodbench.board.leaderboard import Leaderboard, compile_leaderboard
from oodbench.board.row import Cell
from oodbench.settings.space import Value
from oodbench.study.study import Study
from oodbench.suite.published import stand_beside
from oodbench.suite.suite import BoardSpec, Mode, Overrides, Part, Suite

if TYPE_CHECKING:
    from oodbench.record.tracking import Reading, Record
    from oodbench.study.record import ConcludedStudy

Placed = tuple[Part, Study]
"""A study, and where in the suite it stands."""


@dataclass(frozen=True)
class Point:
    """One study of a curve."""

    method: str
    at: Value
    cells: dict[str, Cell]


@dataclass(frozen=True, eq=False)
class BoardResult:
    """A board of a suite: a leaderboard per setting, or a curve."""

    board: BoardSpec
    leaderboards: list[Leaderboard]
    points: list[Point]  # of the curve, method by method
    concluded: list[list[ConcludedStudy]]  # what the record has, leaderboard by leaderboard

    @property
    def studies(self) -> list[ConcludedStudy]:
        return [study for studies in self.concluded for study in studies]

    def as_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = {"name": self.board.name, "title": self.board.title}
        if self.board.curve is None:
            return values | {"leaderboards": [board.as_dict() for board in self.leaderboards]}
        points = [
            {"method": point.method, self.board.curve.hyper_parameter: point.at}
            | {"metrics": {metric: cell.as_dict() for metric, cell in point.cells.items()}}
            for point in self.points
        ]
        return values | {"dataset_id": self.leaderboards[0].dataset_id, "curve": points}


@dataclass(frozen=True, eq=False)
class SuiteBoards:
    """A suite in one mode, with its boards compiled: all that its files and its page are made of."""

    suite: Suite
    mode: Mode
    overrides: Overrides
    boards: list[BoardResult]


def compile_boards(suite: Suite, placed: Sequence[Placed], record: Record, mixed: bool) -> list[BoardResult]:
    """The suite's boards in their order, from what the record has of their studies."""
    tables = [
        [(part, study) for part, study in placed if part.board is board and part.settings is settings]
        for board in suite.boards
        for settings in board.settings
    ]
    readings = iter(record.read_boards([[study for _, study in table] for table in tables]))
    rest = iter(tables)
    return [
        _compile_board(board, [(next(rest), next(readings)) for _ in board.settings], mixed) for board in suite.boards
    ]


def _compile_board(board: BoardSpec, tables: Sequence[tuple[list[Placed], Reading]], mixed: bool) -> BoardResult:
    leaderboards, points, by_leaderboard = [], [], []
    for settings, (here, reading) in zip(board.settings, tables, strict=True):
        studies = [study for _, study in here]
        labels = [study.label for study in studies]
        compiled = compile_leaderboard(
            studies[0].dataset_id, reading.studies, labels, board.metrics, mixed=mixed, unreadable=reading.unreadable
        )
        methods = {study.label: part.method for part, study in here}
        compiled = stand_beside(compiled, board.published, studies[0].dataset, methods)
        rows = {row.label: row for row in compiled.rows}
        in_order = [rows[label] for label in labels]  # the suite's, as in a paper's table
        leaderboards.append(replace(compiled, dataset_id=board.dataset_id(settings), rows=in_order))
        by_leaderboard.append(reading.studies)
        points += [
            Point(part.method, part.point, rows[study.label].cells) for part, study in here if part.point is not None
        ]
    return BoardResult(board, leaderboards, points, by_leaderboard)
