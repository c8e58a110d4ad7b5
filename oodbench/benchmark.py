"""The whole way, once: plan, search, select, evaluate, record. `oodbench.run` and `oodbench.leaderboard`."""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodbench.board import Leaderboard, compile_leaderboard
from oodbench.dataset import Dataset
from oodbench.errors import Interrupted, UserError
from oodbench.method import Method
from oodbench.plan import Request, dataset_setting, plan
from oodbench.progress import Progress
from oodbench.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.tracking import Record
    from oodbench.trial import Pack, PackResult

DIRECTORY = Path(".oodbench")


@dataclass(frozen=True, eq=False)
class Result:
    """What a run came to. Everything in it is read back from the record."""

    studies: list[Study]
    failures: dict[str, str]  # study label @ setting -> why it has no result
    record: Record

    def leaderboards(self) -> list[Leaderboard]:
        """One leaderboard per dataset setting of the run, with the studies of this run only."""
        return [
            _compile(self.record, setting, [study for study in self.studies if study.setting == setting])
            for setting in dict.fromkeys(study.setting for study in self.studies)
        ]

    def leaderboard(self) -> Leaderboard:
        """The leaderboard of a run on one dataset setting."""
        boards = self.leaderboards()
        if len(boards) != 1:
            raise UserError("the run has several dataset settings.\nUse leaderboards().")
        return boards[0]

    def results(self) -> pd.DataFrame:
        """Every result row: study x configuration x seed x part x environment."""
        import pandas as pd

        identities = {study.identity for study in self.studies}
        frames = [
            record.results.assign(method=record.label, setting=setting)
            for setting in dict.fromkeys(study.setting for study in self.studies)
            for record in self.record.studies(setting, identities)
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
    device: str = "auto",
    address: str | None = None,
    tracking_uri: str | None = None,
    directory: str | Path = DIRECTORY,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Tune every method on every dataset with the same budget, open the test environments once, and record it all.

    >>> oodbench.run(["erm", "fdro"], "selection_bias", settings={"r1": 1.9}).leaderboard()
    """
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
    )
    return _Run(request, address, tracking_uri, Path(directory), fresh, progress or Progress()).execute()


def leaderboard(
    dataset: str,
    *,
    settings: Mapping[str, Any] | None = None,
    stability: bool = False,
    tracking_uri: str | None = None,
    directory: str | Path = DIRECTORY,
) -> Leaderboard:
    """The leaderboard of a dataset setting, from everything the record has on it; with stability, if so asked."""
    from oodbench.tracking import Record

    setting = dataset_setting(dataset, settings or {})
    record = Record(tracking_uri, Path(directory))
    records = [] if record.is_empty else record.studies(setting)
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
    return compile_leaderboard(setting, records, stability=stability)


class _Run:
    """One call of `run`, with what its steps share."""

    def __init__(
        self,
        request: Request,
        address: str | None,
        tracking_uri: str | None,
        directory: Path,
        fresh: bool,
        progress: Progress,
    ) -> None:
        self.request, self.address, self.fresh, self.progress = request, address, fresh, progress
        self.tracking_uri, self.directory = tracking_uri, directory
        self.failures: dict[str, str] = {}

    def execute(self) -> Result:
        from oodbench.search import cluster, resolve_device
        from oodbench.tracking import Record

        self.request.check()
        self.record = Record(self.tracking_uri, self.directory)
        with contextlib.ExitStack() as stack:
            if self.address is not None:  # what the cluster has decides about the device
                stack.enter_context(cluster(self.address))
            device = resolve_device(self.request.device, self.address)
            self.progress.stage("making the data")
            studies = plan(self.request, device)
            self.progress.plan(studies, self.record.address)
            # opening the record takes seconds when it is new: meanwhile the search starts
            opener = stack.enter_context(ThreadPoolExecutor(1, "record"))
            opening = opener.submit(lambda: self.record.client)
            pending = studies if self.record.is_empty or self.fresh else self._unfinished(studies, opening)
            if pending:
                self.progress.stage("starting Ray" if self.address is None else "connecting")
                stack.enter_context(cluster(self.address))
                self._search(pending, opening)
            else:
                self.progress.stage("all of it is in the record already, --fresh runs it again")
        return Result(studies, self.failures, self.record)

    def _unfinished(self, studies: list[Study], opening: Future[Any]) -> list[Study]:
        opening.result()
        return [study for study in studies if not self.record.finished(study.identity)]

    def _search(self, studies: list[Study], opening: Future[Any]) -> None:
        """Run the packs that are not finished yet; conclude each study when its last pack is there."""
        from oodbench.packstore import PackStore
        from oodbench.search import Job, run_jobs

        self.started = time.time()

        stores = {study.identity: PackStore(self.directory, study) for study in studies}
        by_identity = {study.identity: study for study in studies}
        if self.fresh:
            for store in stores.values():
                store.discard()
        results = {study.identity: stores[study.identity].load() for study in studies}
        jobs = [
            Job(pack, study.method, study.setup, {seed: study.search_data(seed) for seed in pack.seeds})
            for study in studies
            for pack in study.packs
            if pack.index not in results[study.identity]
        ]
        finished = [pack for study in studies for pack in study.packs if pack.index in results[study.identity]]
        self.progress.begin(sum(study.trainings for study in studies), sum(len(pack.trials) for pack in finished))
        # concluding and recording a study goes on beside the search of the next
        concluding: list[Future[None]] = []
        with ThreadPoolExecutor(1, "conclude") as executor:
            executor.submit(importlib.import_module, "torch")  # takes a second, and is needed to conclude

            def conclude_if_whole(study: Study) -> None:
                if len(results[study.identity]) == len(study.packs):
                    packs = results[study.identity]
                    concluding.append(executor.submit(self._conclude, study, packs, stores[study.identity], opening))

            def on_result(pack: Pack, result: PackResult) -> None:
                study = by_identity[pack.study]
                stores[pack.study].save(pack, result)
                results[pack.study][pack.index] = result
                self.progress.advance(study, len(pack.trials), len(result.failures))
                conclude_if_whole(study)

            for study in studies:
                conclude_if_whole(study)
            try:
                if jobs:
                    run_jobs(jobs, on_result)
            except (Interrupted, KeyboardInterrupt):
                saved = sum(len(found) for found in results.values())
                total = sum(len(study.packs) for study in studies)
                raise Interrupted(
                    f"stopped. {saved} of {total} packs are saved in {self.directory}.\n"
                    "The same command continues from there."
                ) from None
            finally:
                self.progress.end()
        for future in concluding:
            future.result()

    def _conclude(self, study: Study, packs: dict[int, PackResult], store: Any, opening: Future[Any]) -> None:
        from oodbench.outcome import conclude

        outcome = conclude(study, packs, store, self.started)
        opening.result()
        self.record.write(outcome)
        store.discard()
        if outcome.error:
            self.failures[f"{study.label} on {study.setting}"] = outcome.error


def _compile(record: Record, setting: str, studies: Sequence[Study]) -> Leaderboard:
    records = record.studies(setting, {study.identity for study in studies})
    return compile_leaderboard(setting, records, [study.label for study in studies])
