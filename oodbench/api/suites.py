"""`oodbench.run_suite` and `oodbench.suite_leaderboards`: the boards of a suite."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from oodbench.driver.execution import Execution
from oodbench.driver.progress import Progress
from oodbench.errors import UserError
from oodbench.settings.duration import parse_optional
from oodbench.study.directory import DIRECTORY
from oodbench.study.plan import plan
from oodbench.study.resources import Resources
from oodbench.study.study import Study
from oodbench.suite.results import BoardResult, SuiteBoards, compile_boards
from oodbench.suite.suite import Asked, Mode, Overrides, Part, Suite, expand
from oodbench.suite.suitefile import read_suite

if TYPE_CHECKING:
    from oodbench.record.tracking import Record


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

    @cached_property
    def boards(self) -> list[BoardResult]:
        """The suite's boards in their order, each with its `leaderboards`, or the `points` of a curve."""
        return compile_boards(self.suite, self.parts, self.record, self.mode.mixed or self.overrides.mixed)

    def write(self, folder: str | Path) -> list[Path]:
        """Files per board, figures, a page and an index, README.md; the same record gives the same bytes."""
        from oodbench.report.suite import write_files

        return write_files(self._compiled(), Path(folder))

    def write_page(self, folder: str | Path) -> Path:
        """One page, index.html, with all boards; it needs no network and no server."""
        from oodbench.report.suite import write_suite_page

        return write_suite_page(self._compiled(), folder)

    def _compiled(self) -> SuiteBoards:
        return SuiteBoards(self.suite, self.mode, self.overrides, self.boards)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        boards = [board.as_dict() for board in self.boards]
        return {"suite": self.suite.name, "mode": self.mode.name, "boards": boards}


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
    resources = Resources(address, cpus_per_pack, gpus_per_pack, parse_optional(trial_timeout, "--trial-timeout"))
    execution = Execution(requests, resources, tracking_uri, Path(directory), fresh, progress or Progress())
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
    from oodbench.record.tracking import Record
    from oodbench.search import resolve_device

    overrides = Overrides(**asked)
    suite, chosen, parts = _expand(name, mode, overrides)
    record = Record(tracking_uri, Path(directory))
    result = None
    if not record.is_empty:
        planned = plan([part.request for part in parts], resolve_device(overrides.device, None))
        studies = [study for (study,) in planned]
        result = SuiteResult(suite, chosen, overrides, list(zip(parts, studies, strict=True)), {}, record)
    if result is None or not any(board.studies for board in result.boards):
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
