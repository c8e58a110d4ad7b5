"""`oodbench.run_suite`, and the boards that the studies of a suite come to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from oodbench.benchmark import DIRECTORY
from oodbench.board import Cell, Leaderboard, compile_leaderboard
from oodbench.duration import parse_optional
from oodbench.errors import UserError
from oodbench.execution import Execution
from oodbench.plan import plan
from oodbench.progress import Progress
from oodbench.published import stand_beside
from oodbench.space import Value
from oodbench.study import Study
from oodbench.suite import Asked, Board, Mode, Overrides, Part, Suite, expand
from oodbench.suitefile import read_suite
from oodbench.workers import Workers

if TYPE_CHECKING:
    from oodbench.studyrecord import StudyRecord
    from oodbench.tracking import Record


@dataclass(frozen=True)
class Point:
    """One study of a curve."""

    method: str
    at: Value
    cells: dict[str, Cell]


@dataclass(frozen=True, eq=False)
class BoardResult:
    """A board of a suite: a leaderboard per setting, or a curve."""

    board: Board
    leaderboards: list[Leaderboard]
    points: list[Point]  # of the curve, method by method
    found: list[list[StudyRecord]]  # what the record has, leaderboard by leaderboard

    @property
    def records(self) -> list[StudyRecord]:
        return [record for records in self.found for record in records]

    def as_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = {"name": self.board.name, "title": self.board.title}
        if self.board.curve is None:
            return values | {"leaderboards": [board.as_dict() for board in self.leaderboards]}
        points = [
            {"method": point.method, self.board.curve.hyper_parameter: point.at}
            | {"metrics": {metric: cell.as_dict() for metric, cell in point.cells.items()}}
            for point in self.points
        ]
        return values | {"setting": self.leaderboards[0].setting, "curve": points}


@dataclass(frozen=True, eq=False)
class SuiteResult:
    """What a suite came to in one mode. Everything in it is read back from the record.

    Examples:
        >>> result = oodbench.run_suite("paper", methods=["erm"])
        >>> result.boards[0].leaderboards[0].frame()
    """

    suite: Suite
    mode: Mode
    overrides: Overrides
    parts: list[tuple[Part, Study]]
    failures: dict[str, str]  # study label @ setting -> why it has no result
    record: Record
    undelivered: list[str] = field(default_factory=list)  # studies that wait in the outbox, for the record to be back

    @property
    def mixed(self) -> bool:
        return self.mode.mixed or self.overrides.mixed

    @cached_property
    def boards(self) -> list[BoardResult]:
        """The suite's boards in their order, each with its `leaderboards`, or the `points` of a curve."""
        return [self._board(board) for board in self.suite.boards]

    def write(self, folder: str | Path) -> list[Path]:
        """Files per board, figures, a page and an index, README.md; the same record gives the same bytes."""
        from oodbench.report.suite import write_files

        return write_files(self, Path(folder))

    def write_page(self, folder: str | Path) -> Path:
        """One page, index.html, with all boards; it needs no network and no server."""
        from oodbench.report.page import Chapter, write_page
        from oodbench.report.suite import suite_command

        chapters = [
            Chapter(board.board.title, board.leaderboards, board if board.board.curve else None)
            for board in self.boards
        ]
        about = [self.suite.about.strip(), f"Mode {self.mode.name}: {self.mode.about.strip()}"]
        return write_page(folder, self.suite.title, chapters, about, suite_command("run", self))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        boards = [board.as_dict() for board in self.boards]
        return {"suite": self.suite.name, "mode": self.mode.name, "boards": boards}

    def _board(self, board: Board) -> BoardResult:
        leaderboards, points, by_leaderboard = [], [], []
        for settings in board.settings:
            mine = [one for one in self.parts if one[0].board is board and one[0].settings is settings]
            studies = [study for _, study in mine]
            found = [] if self.record.is_empty else self.record.records_of(studies)
            labels = [study.label for study in studies]
            compiled = compile_leaderboard(studies[0].setting, found, labels, board.metrics, mixed=self.mixed)
            methods = {study.label: part.method for part, study in mine}
            compiled = stand_beside(compiled, board.published, studies[0].dataset, methods)
            rows = {row.label: row for row in compiled.rows}
            in_order = [rows[label] for label in labels]  # the suite's, as in a paper's table
            leaderboards.append(replace(compiled, setting=board.setting(settings), rows=in_order))
            by_leaderboard.append(found)
            points += [
                Point(part.method, part.point, rows[study.label].cells)
                for part, study in mine
                if part.point is not None
            ]
        return BoardResult(board, leaderboards, points, by_leaderboard)


def run_suite(
    name: str,
    *,
    mode: str | None = None,
    address: str | None = None,
    cpus_per_pack: float = 1.0,
    gpus_per_pack: float | None = None,
    trial_timeout: str | float | None = None,
    tracking_uri: str | None = None,
    directory: str | Path = DIRECTORY,
    fresh: bool = False,
    progress: Progress | None = None,
    **asked: Unpack[Asked],
) -> SuiteResult:
    """Run every study of a suite as one search. What is not told here is as for `oodbench.run`.

    Args:
        name: A suite that comes along, or the path of a file.
        mode: One of its modes, instead of its default.
        **asked: `methods` and `datasets` narrow it; `trials`, `seeds`, `seed`, `selector` and `device` are for all;
            `mixed` shows unequal budgets together.

    Examples:
        >>> oodbench.run_suite("paper", mode="fair", methods=["erm", "fdro"]).write("boards")
    """
    overrides = Overrides(**asked)
    suite, chosen, parts = _expand(name, mode, overrides)
    requests = [part.request for part in parts]
    workers = Workers(address, cpus_per_pack, gpus_per_pack, parse_optional(trial_timeout, "--trial-timeout"))
    execution = Execution(requests, workers, tracking_uri, Path(directory), fresh, progress or Progress())
    studies = [study for (study,) in execution.execute()]
    placed = list(zip(parts, studies, strict=True))
    undelivered = [parcel.title for parcel in execution.undelivered]
    return SuiteResult(suite, chosen, overrides, placed, execution.failures, execution.record, undelivered)


def suite_leaderboards(
    name: str,
    *,
    mode: str | None = None,
    tracking_uri: str | None = None,
    directory: str | Path = DIRECTORY,
    **asked: Unpack[Asked],
) -> SuiteResult:
    """The boards of a suite from what the record has of exactly these studies, without running anything.

    Arguments are those of `oodbench.run_suite`, with the budget of the run if it had one of its own.

    Examples:
        >>> oodbench.suite_leaderboards("paper", methods=["erm", "fdro"]).write_page("page")
    """
    from oodbench.search import resolve_device
    from oodbench.tracking import Record

    overrides = Overrides(**asked)
    suite, chosen, parts = _expand(name, mode, overrides)
    record = Record(tracking_uri, Path(directory))
    result = None
    if not record.is_empty:
        planned = plan([part.request for part in parts], resolve_device(overrides.device, None))
        studies = [study for (study,) in planned]
        result = SuiteResult(suite, chosen, overrides, list(zip(parts, studies, strict=True)), {}, record)
    if result is None or not any(board.records for board in result.boards):
        raise UserError(
            f"there are no studies of suite {name!r}, mode {chosen.name!r}, with this budget in {record.address}.\n"
            f"Run `oodbench run --suite {name} --mode {chosen.name}` first."
        )
    return result


def _expand(name: str, mode: str | None, overrides: Overrides) -> tuple[Suite, Mode, list[Part]]:
    suite = read_suite(name)
    chosen = suite.find_mode(mode)
    suite = suite.leave_out(chosen.without).narrow(overrides.methods, overrides.datasets)
    return suite, chosen, expand(suite, chosen, overrides)
