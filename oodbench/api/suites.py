"""`oodbench.run_suite` and `oodbench.suite_leaderboards`: the boards of a suite."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodbench.driver.driver import Driver, Workplace
from oodbench.errors import UserError
from oodbench.settings.option import like, option, takes_options
from oodbench.study.plan import plan
from oodbench.study.spec import Place, Resources
from oodbench.study.study import Study
from oodbench.suite.results import BoardResult, SuiteBoards, compile_boards
from oodbench.suite.suite import Mode, Overrides, Part, Suite, expand
from oodbench.suite.suitefile import read_suite

if TYPE_CHECKING:
    from oodbench.record.tracking import Record


@dataclass(frozen=True, eq=False)
class SuiteResult:
    """What a suite came to in one mode: what was concluded just now is at hand, the rest is read from the record.

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


@dataclass(frozen=True, kw_only=True)
class SuiteOptions(Workplace, Resources, Overrides):
    """All options of `oodbench.run_suite`.

    Examples:
        >>> oodbench.run_suite("paper", mode="fair", methods=["erm", "fdro"], trials=5)
    """

    mode: str | None = option(None, "A mode of the suite, instead of its default.")


@dataclass(frozen=True, kw_only=True)
class SuiteBoardOptions(Place, Overrides):
    """All options of `oodbench.suite_leaderboards`: the budget is that of the run, if it had one of its own.

    Examples:
        >>> oodbench.suite_leaderboards("paper", mode="fair", methods=["erm", "fdro"])
    """

    mode: str | None = like(SuiteOptions, "mode")


@takes_options(SuiteOptions)
def run_suite(name: str, options: SuiteOptions) -> SuiteResult:
    """Run every study of a suite as one search.

    Args:
        name: A built-in suite, or the path of a file.
        options: The fields of `oodbench.SuiteOptions`, as keyword arguments. `methods` and `datasets` narrow the suite;
            `trials`, `seeds`, `seed`, `selector` and `device` are for all studies.

    Examples:
        >>> oodbench.run_suite("paper", mode="fair", methods=["erm", "fdro"]).write("boards")
    """
    suite, mode, parts = _expand(name, options.mode, options)
    driver = Driver(options.part(Resources), options.part(Workplace))
    studies = driver.drive([part.spec for part in parts])
    placed = list(zip(parts, studies, strict=True))
    overrides = options.part(Overrides)
    return SuiteResult(suite, mode, overrides, placed, driver.failures, driver.record, driver.undelivered)


@takes_options(SuiteBoardOptions)
def suite_leaderboards(name: str, options: SuiteBoardOptions) -> SuiteResult:
    """The boards of a suite from what the record has of exactly these studies, without running anything.

    Args:
        name: A built-in suite, or the path of a file.
        options: As for `oodbench.run_suite`: those that say which studies, and where their record is.

    Examples:
        >>> oodbench.suite_leaderboards("paper", methods=["erm", "fdro"]).write_page("page")
    """
    from oodbench.record.tracking import Record
    from oodbench.search import resolve_device

    suite, mode, parts = _expand(name, options.mode, options)
    record = Record(options.tracking_uri, options.folder)
    result = None
    if not record.is_empty:
        studies = plan([part.spec for part in parts], resolve_device(options.device, None))
        placed = list(zip(parts, studies, strict=True))
        result = SuiteResult(suite, mode, options.part(Overrides), placed, {}, record)
    if result is None or not any(board.studies for board in result.boards):
        raise UserError(
            f"there are no studies of suite {name!r}, mode {mode.name!r}, with this budget in {record.address}.\n"
            f"Run `oodbench run --suite {name} --mode {mode.name}` first."
        )
    return result


def _expand(name: str, mode: str | None, overrides: Overrides) -> tuple[Suite, Mode, list[Part]]:
    suite = read_suite(name)
    chosen = suite.find_mode(mode)
    suite = suite.leave_out(chosen.without).narrow(overrides.methods, overrides.datasets)
    return suite, chosen, expand(suite, chosen, overrides)
