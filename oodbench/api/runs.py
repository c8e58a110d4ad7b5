"""`oodbench.run`: methods on datasets, and what that came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.api.boards import write_page
from oodbench.board.leaderboard import Leaderboard, compile_leaderboard
from oodbench.driver.driver import Driver, Workplace
from oodbench.errors import UserError
from oodbench.plugin.dataset import Dataset
from oodbench.plugin.method import Method
from oodbench.settings.option import option, takes_two_and_options
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.spec import Resources, StudyOptions
from oodbench.study.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.record.tracking import Record
    from oodbench.study.record import ConcludedStudy

Methods = str | type[Method] | Sequence[str | type[Method]]
Datasets = str | type[Dataset] | Sequence[str | type[Dataset]]


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What a run came to: what it concluded itself is at hand, what was recorded before is read from the record.

    Examples:
        >>> result = oodbench.run("erm", "selection_bias")
        >>> result.results().query("chosen and part == 'test'")
        >>> result.write_figures("figures", format="pdf")
    """

    studies: list[Study]
    failures: dict[str, str]  # study label @ setting -> why it has no result
    record: Record
    undelivered: list[str] = field(default_factory=list)  # studies that wait in the outbox, for the record to be back
    price: bool = False  # whether its leaderboards show what every selector would have chosen
    baselines: tuple[ConcludedStudy, ...] = ()  # that were run before, elsewhere, and are shown beside its own

    def __repr__(self) -> str:
        return f"<Result of {len(self.studies)} studies, {len(self.failures)} failed>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the leaderboards."""
        return "".join(board._repr_html_() for board in self.leaderboards())

    def leaderboards(self, mixed: bool = False) -> list[Leaderboard]:
        """One leaderboard per dataset setting of the run, with the studies of this run only."""
        by_dataset: dict[str, list[Study]] = {}
        for study in self.studies:
            by_dataset.setdefault(study.dataset_id, []).append(study)
        readings = self.record.read_boards(list(by_dataset.values()))
        return [
            compile_leaderboard(
                dataset_id,
                [*reading.studies, *self._baselines_on(dataset_id)],
                [study.label for study in studies],
                mixed=mixed,
                unreadable=reading.unreadable,
                price=self.price,
            )
            for (dataset_id, studies), reading in zip(by_dataset.items(), readings, strict=True)
        ]

    def _baselines_on(self, dataset_id: str) -> list[ConcludedStudy]:
        return [baseline for baseline in self.baselines if baseline.record.dataset_id == dataset_id]

    def leaderboard(self) -> Leaderboard:
        """The leaderboard of a run on one dataset setting."""
        boards = self.leaderboards()
        if len(boards) != 1:
            raise UserError("the run has several dataset settings.\nUse leaderboards().")
        return boards[0]

    def write_figures(self, folder: str | Path, format: str = "svg") -> list[Path]:
        """Figures of the test environments, into the folder, or into one of its own for each of several settings."""
        from oodbench.report.figures import write_figures

        settings = {study.dataset_id: study.dataset_name for study in self.studies}
        written = []
        for number, (dataset_id, name) in enumerate(settings.items(), start=1):
            records = self.record.records_of([study for study in self.studies if study.dataset_id == dataset_id])
            own = Path(folder) / f"{number}-{name}" if len(settings) > 1 else Path(folder)
            written += write_figures(dataset_id, records, own, format)
        return written

    def write(self, folder: str | Path, mixed: bool = False) -> list[Path]:
        """The leaderboards of the run as files: tables, scores, what was tried and chosen, and a page."""
        from oodbench.report.folder import write_boards

        return write_boards(self.leaderboards(mixed), folder)

    def write_page(self, folder: str | Path) -> Path:
        """One page, index.html, with the leaderboards of the run; it needs no network and no server."""
        return write_page(self.leaderboards(), folder)

    def results(self) -> pd.DataFrame:
        """Every result row: study x repeat of the search x configuration x seed x part x environment."""
        import pandas as pd

        frames = [
            concluded.results.assign(method=concluded.label, dataset_id=study.dataset_id, repeat=study.budget.repeat)
            for study in self.studies
            for concluded in self.record.records_of([study])
            if concluded.results is not None
        ]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


@dataclass(frozen=True, kw_only=True)
class RunOptions(Workplace, Resources, StudyOptions):
    """All options of `oodbench.run`, which are those of `oodbench run`.

    Examples:
        >>> oodbench.run("erm", "selection_bias", settings={"r1": 1.9}, trials=5, seeds=3)
    """

    baselines: str | Path | None = option(
        None, "A submission, or a folder of them: its studies are shown beside those of the run, and not run again.",
        metavar="PATH",
    )  # fmt: skip


@takes_two_and_options(RunOptions)
def run(methods: Methods, dataset: Datasets, options: RunOptions) -> Result:
    """Tune every method on every dataset with the same budget, open the test environments once, and record it all.

    Called again it continues what was stopped, and does not run again what is recorded.

    Args:
        methods: Names, `"srm:released"` for a preset, or classes; one or several.
        dataset: Names or classes; one or several.
        options: The fields of `oodbench.RunOptions`, as keyword arguments.

    Returns:
        What it came to. Studies that failed are in its `failures`; the others have their results.

    Examples:
        >>> result = oodbench.run(["erm", "fdro"], "selection_bias", settings={"r1": 1.9})
        >>> result.leaderboard().frame()
    """
    specs = resolve(_request(methods, dataset, options))
    baselines: tuple[ConcludedStudy, ...] = ()
    if options.baselines is not None:
        from oodbench.submission.baselines import beside, read_baselines

        known = read_baselines(options.baselines)
        baselines = beside(plan(specs, "cpu"), known)  # that they do not fit is known before anything is trained
    driver = Driver(options.part(Resources), options.part(Workplace))
    studies = driver.drive(specs)
    return Result(studies, driver.failures, driver.record, driver.undelivered, options.price, baselines)


@takes_two_and_options(RunOptions)
def plan_run(methods: Methods, dataset: Datasets, options: RunOptions) -> tuple[list[Study], str]:
    """The studies that `run` would run, with their data, and where it would record them."""
    driver = Driver(options.part(Resources), options.part(Workplace))
    return driver.plan(resolve(_request(methods, dataset, options))), driver.record.address


def _request(methods: Methods, dataset: Datasets, options: RunOptions) -> Request:
    return Request(
        methods=[methods] if isinstance(methods, str | type) else list(methods),
        datasets=[dataset] if isinstance(dataset, str | type) else list(dataset),
        options=options,
    )
