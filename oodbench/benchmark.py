"""`oodbench.run` and `oodbench.leaderboard`, for what was asked for by hand; suiteresult.py has the same for suites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodbench.board import Leaderboard, compile_leaderboard
from oodbench.dataset import Dataset
from oodbench.duration import parse_optional
from oodbench.errors import UserError
from oodbench.execution import Execution
from oodbench.method import Method
from oodbench.plan import Request, dataset_setting
from oodbench.progress import Progress
from oodbench.statistics import Over
from oodbench.study import Study
from oodbench.workers import Workers

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.studyrecord import StudyRecord
    from oodbench.tracking import Record

DIRECTORY = Path(".oodbench")
MOST_REPEATS = 100


@dataclass(frozen=True, eq=False)
class Result:
    """What a run came to. Everything in it is read back from the record, or from the outbox while that is away."""

    studies: list[Study]
    failures: dict[str, str]  # study label @ setting -> why it has no result
    record: Record
    undelivered: list[str] = field(default_factory=list)  # studies that wait in the outbox, for the record to be back

    def leaderboards(self, mixed: bool = False) -> list[Leaderboard]:
        """One leaderboard per dataset setting of the run, with the studies of this run only."""
        boards = []
        for setting in dict.fromkeys(study.setting for study in self.studies):
            studies = [study for study in self.studies if study.setting == setting]
            labels = [study.label for study in studies]
            boards.append(compile_leaderboard(setting, self.record.records_of(studies), labels, mixed=mixed))
        return boards

    def leaderboard(self) -> Leaderboard:
        """The leaderboard of a run on one dataset setting."""
        boards = self.leaderboards()
        if len(boards) != 1:
            raise UserError("the run has several dataset settings.\nUse leaderboards().")
        return boards[0]

    def write_figures(self, folder: str | Path, format: str = "svg") -> list[Path]:
        """Figures of the test environments, into the folder, or into one of its own for each of several settings."""
        from oodbench.report.figures import write_figures

        settings = {study.setting: study.dataset_name for study in self.studies}
        written = []
        for number, (setting, name) in enumerate(settings.items(), start=1):
            records = self.record.records_of([study for study in self.studies if study.setting == setting])
            own = Path(folder) / f"{number}-{name}" if len(settings) > 1 else Path(folder)
            written += write_figures(setting, records, own, format)
        return written

    def write_page(self, folder: str | Path) -> Path:
        """One page, index.html, with the leaderboards of the run; it needs no network and no server."""
        from oodbench.report.page import Chapter, write_page

        boards = self.leaderboards()
        title = boards[0].setting if len(boards) == 1 else f"{len(boards)} dataset settings"
        return write_page(folder, title, [Chapter("", boards)])

    def results(self) -> pd.DataFrame:
        """Every result row: study x repeat of the search x configuration x seed x part x environment."""
        import pandas as pd

        frames = [
            record.results.assign(method=record.label, setting=study.setting, repeat=study.budget.repeat)
            for study in self.studies
            for record in self.record.records_of([study])
            if record.results is not None
        ]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def run(
    methods: str | type[Method] | Sequence[str | type[Method]],
    dataset: str | type[Dataset] | Sequence[str | type[Dataset]],
    *,
    settings: Mapping[str, Any] | None = None,
    model: str | None = None,
    model_settings: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    fix: Mapping[str, Any] | None = None,
    trials: int = 20,
    seeds: int = 10,
    seed: int = 0,
    selector: str = "worst",
    search: str = "random",
    scheduler: str = "none",
    budget: str | float | None = None,
    repeats: int = 1,
    price: bool = False,
    device: str = "auto",
    address: str | None = None,
    cpus_per_pack: float = 1.0,
    gpus_per_pack: float | None = None,
    trial_timeout: str | float | None = None,
    tracking_uri: str | None = None,
    directory: str | Path = DIRECTORY,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Tune every method on every dataset with the same budget, open the test environments once, and record it all.

    With `repeats` the whole search is done so often, on the same data, and the board has the spread over searches.
    With `price` the same search is done again with the oracle's choice, to tell what choosing on validation data costs.

    >>> oodbench.run(["erm", "fdro"], "selection_bias", settings={"r1": 1.9}).leaderboard()
    """
    if not 1 <= repeats <= MOST_REPEATS:
        raise UserError(f"--repeats must be 1 to {MOST_REPEATS}, not {repeats}.")
    if price and selector == "oracle":
        raise UserError("--price compares a choice on validation data with the oracle.\nLeave out --selector oracle.")
    request = Request(
        methods=[methods] if isinstance(methods, str | type) else list(methods),
        datasets=[dataset] if isinstance(dataset, str | type) else list(dataset),
        settings=dict(settings or {}),
        model=model,
        model_settings=dict(model_settings or {}),
        training=dict(training or {}),
        fix=dict(fix or {}),
        trials=trials,
        seeds=seeds,
        seed=seed,
        selector=selector,
        device=device,
        search=search,
        scheduler=scheduler,
        budget=parse_optional(budget, "--budget"),
    )
    requests = [replace(request, repeat=repeat) for repeat in range(repeats)]
    requests += [replace(request, selector="oracle")] if price else []
    workers = Workers(address, cpus_per_pack, gpus_per_pack, parse_optional(trial_timeout, "--trial-timeout"))
    execution = Execution(requests, workers, tracking_uri, Path(directory), fresh, progress or Progress())
    studies = [study for some in execution.execute() for study in some]
    undelivered = [parcel.title for parcel in execution.undelivered]
    return Result(studies, execution.failures, execution.record, undelivered)


def leaderboard(
    dataset: str,
    *,
    settings: Mapping[str, Any] | None = None,
    stability: bool = False,
    over: Over = "seeds",
    trials: int | None = None,
    seeds: int | None = None,
    mixed: bool = False,
    tracking_uri: str | None = None,
    directory: str | Path = DIRECTORY,
) -> Leaderboard:
    """The leaderboard of a dataset setting, from everything the record has on it, or has with so many trials and seeds.

    Studies that differ in budget or data are shown together only if `mixed`. Tiers and intervals are about other
    training draws, or with `over="environments"` about other environments.
    """
    setting, records = recorded_studies(dataset, settings or {}, tracking_uri, Path(directory), trials, seeds)
    return compile_leaderboard(setting, records, stability=stability, over=over, mixed=mixed)


def recorded_studies(
    dataset: str,
    settings: Mapping[str, Any],
    tracking_uri: str | None,
    directory: Path,
    trials: int | None = None,
    seeds: int | None = None,
) -> tuple[str, list[StudyRecord]]:
    """A dataset setting and the studies on it, of each label the newest; there is at least one."""
    from oodbench.tracking import Record

    setting = dataset_setting(dataset, settings)
    record = Record(tracking_uri, directory)
    records = [] if record.is_empty else record.studies(setting, trials, seeds)
    if not records and (trials or seeds) and not record.is_empty and record.studies(setting):
        raise UserError(
            f"no study on {setting!r} in {record.address} has this budget.\n"
            "Leave out --trials and --seeds to see which there are."
        )
    if not records:
        known = "" if record.is_empty else ", ".join(record.settings())
        raise UserError(
            f"there are no studies on {setting!r} in {record.address}.\n"
            + (
                f"There are some on: {known}."
                if known
                else f"Run `oodbench run --method erm --dataset {dataset}` first."
            )
        )
    return setting, records
