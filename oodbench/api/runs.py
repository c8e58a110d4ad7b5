"""`oodbench.run`: methods on datasets, and what that came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodbench.api.boards import write_page
from oodbench.board.leaderboard import Leaderboard, compile_leaderboard
from oodbench.driver.execution import Execution
from oodbench.driver.progress import Progress
from oodbench.errors import UserError
from oodbench.plugin.dataset import Dataset
from oodbench.plugin.method import Method
from oodbench.settings.duration import parse_optional
from oodbench.study.directory import DIRECTORY
from oodbench.study.plan import Request
from oodbench.study.resources import Resources
from oodbench.study.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.record.tracking import Record

MOST_REPEATS = 100


@dataclass(frozen=True, eq=False)
class Result:
    """What a run came to. Everything in it is read back from the record, or from the outbox while that is away.

    Examples:
        >>> result = oodbench.run("erm", "selection_bias")
        >>> result.results().query("chosen and part == 'test'")
        >>> result.write_figures("figures", format="pdf")
    """

    studies: list[Study]
    failures: dict[str, str]  # study label @ setting -> why it has no result
    record: Record
    undelivered: list[str] = field(default_factory=list)  # studies that wait in the outbox, for the record to be back

    def leaderboards(self, mixed: bool = False) -> list[Leaderboard]:
        """One leaderboard per dataset setting of the run, with the studies of this run only."""
        boards = []
        for dataset_id in dict.fromkeys(study.dataset_id for study in self.studies):
            studies = [study for study in self.studies if study.dataset_id == dataset_id]
            labels = [study.label for study in studies]
            boards.append(compile_leaderboard(dataset_id, self.record.records_of(studies), labels, mixed=mixed))
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

        settings = {study.dataset_id: study.dataset_name for study in self.studies}
        written = []
        for number, (dataset_id, name) in enumerate(settings.items(), start=1):
            records = self.record.records_of([study for study in self.studies if study.dataset_id == dataset_id])
            own = Path(folder) / f"{number}-{name}" if len(settings) > 1 else Path(folder)
            written += write_figures(dataset_id, records, own, format)
        return written

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


def run(
    methods: str | type[Method] | Sequence[str | type[Method]],
    dataset: str | type[Dataset] | Sequence[str | type[Dataset]],
    *,
    settings: Mapping[str, Any] | None = None,
    model: str | None = None,
    model_settings: Mapping[str, Any] | None = None,
    recipe: Mapping[str, Any] | None = None,
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

    Called again it continues what was stopped, and does not run again what is recorded.

    Args:
        methods: Names, `"srm:released"` for a preset, or classes; one or several.
        dataset: Names or classes; one or several.
        settings: Of the dataset.
        model: The model family, instead of the dataset's: `"linear"` or `"mlp"`.
        model_settings: Of the model family, such as `{"width": (20, 10)}`.
        recipe: Of the training, such as `{"steps": 500}`.
        fix: Hyper-parameters not to search, or the only values to try: `{"alpha0": 0.1, "irm.penalty": [1, 10]}`.
        trials: Configurations for each method; the first is its defaults.
        seeds: Data seeds on which every configuration is trained.
        seed: The first seed, of the data and of the search.
        selector: How validation scores choose: `"mean"`, `"worst"`, or `"oracle"`, which looks at test data.
        search: Who proposes: `"random"` or `"optuna"`.
        scheduler: Who stops poor trainings early: `"none"` or `"asha"`.
        budget: Time for each method, `"10m"` or seconds; `trials` is then the most.
        repeats: Whole searches to do, on the same data: the board has their spread.
        price: Search again with the oracle's choice, to tell what choosing on validation data costs.
        device: `"auto"`, `"cpu"` or `"cuda"`.
        address: A running Ray cluster; otherwise Ray is started, and stopped.
        cpus_per_pack: CPUs, and torch threads, of a pack.
        gpus_per_pack: GPUs of a pack, or a share of one.
        trial_timeout: How long one training may take, `"10m"` or seconds; longer ones fail.
        tracking_uri: An MLflow server, instead of the record in `directory`.
        directory: Where the record and unfinished work live.
        fresh: Run again what is finished or half-finished.
        progress: Who is told how it goes.

    Returns:
        What it came to. Studies that failed are in its `failures`; the others have their results.

    Examples:
        >>> result = oodbench.run(["erm", "fdro"], "selection_bias", settings={"r1": 1.9})
        >>> result.leaderboard().frame()
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
        recipe=dict(recipe or {}),
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
    resources = Resources(address, cpus_per_pack, gpus_per_pack, parse_optional(trial_timeout, "--trial-timeout"))
    execution = Execution(requests, resources, tracking_uri, Path(directory), fresh, progress or Progress())
    studies = [study for some in execution.execute() for study in some]
    undelivered = [parcel.title for parcel in execution.undelivered]
    return Result(studies, execution.failures, execution.record, undelivered)
