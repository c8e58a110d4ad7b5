"""The whole way, once: plan, search, select, evaluate, record, for all that was asked for together."""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodbench.errors import Interrupted
from oodbench.plan import Request, plan
from oodbench.progress import Progress
from oodbench.study import Study
from oodbench.workers import Workers

if TYPE_CHECKING:
    from oodbench.trial import Pack, PackResult


class Execution:
    """The requests of one run, with what its steps share. They are one search: Ray starts once, data is made once."""

    def __init__(
        self,
        requests: Sequence[Request],
        workers: Workers,
        tracking_uri: str | None,
        directory: Path,
        fresh: bool,
        progress: Progress,
    ) -> None:
        self.requests, self.workers, self.fresh, self.progress = requests, workers, fresh, progress
        self.tracking_uri, self.directory = tracking_uri, directory
        self.failures: dict[str, str] = {}
        self.searched: dict[str, Study] = {}  # by identity, with the configurations that the search decided on

    def execute(self) -> list[list[Study]]:
        """The studies of each request, all of them concluded and in the record."""
        from oodbench.search import cluster, resolve_device
        from oodbench.tracking import Record

        for request in self.requests:
            request.check()
        self.workers.check(self.requests[0].device)
        address = self.workers.address
        self.record = Record(self.tracking_uri, self.directory)
        with contextlib.ExitStack() as stack:
            if address is not None:  # what the cluster has decides about the device
                stack.enter_context(cluster(address))
            device = resolve_device(self.requests[0].device, address)
            self.progress.stage("making the data")
            planned = plan(self.requests, device)
            # requests may have studies in common
            studies = list({study.identity: study for some in planned for study in some}.values())
            self.progress.plan(studies, self.record.address)
            # opening the record takes seconds when it is new: meanwhile the search starts
            opener = stack.enter_context(ThreadPoolExecutor(1, "record"))
            opening = opener.submit(lambda: self.record.client)
            pending = studies if self.record.is_empty or self.fresh else self._unfinished(studies, opening)
            if pending:
                self.progress.stage("starting Ray" if address is None else "connecting")
                stack.enter_context(cluster(address))
                self._search(pending, opening)
            else:
                self.progress.stage("all of it is in the record already, --fresh runs it again")
        self.progress.finish()
        return [[self.searched.get(study.identity, study) for study in some] for some in planned]

    def _unfinished(self, studies: list[Study], opening: Future[Any]) -> list[Study]:
        opening.result()
        return [study for study in studies if not self.record.finished(study.identity)]

    def _search(self, studies: list[Study], opening: Future[Any]) -> None:
        """Run the packs that are not finished yet; conclude each study when its last pack is there."""
        from oodbench.packstore import PackStore
        from oodbench.search import Job, run_jobs, search_study

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
            if study.budget.drawn_up_front
            for pack in study.packs
            if pack.index not in results[study.identity]
        ]
        finished = [pack for study in studies for pack in study.packs if pack.index in results[study.identity]]
        self.progress.begin(sum(study.trainings for study in studies), sum(len(pack.trials) for pack in finished))
        saved = len(finished)
        # concluding and recording a study goes on beside the search of the next
        concluding: list[Future[None]] = []
        with ThreadPoolExecutor(1, "conclude") as executor:
            executor.submit(importlib.import_module, "torch")  # takes a second, and is needed to conclude

            def conclude_if_whole(study: Study) -> None:
                if study.budget.drawn_up_front and len(results[study.identity]) == len(study.packs):
                    begin_to_conclude(study)

            def begin_to_conclude(study: Study) -> None:
                packs = results.pop(study.identity)  # in a long run, all models together would fill the memory
                concluding.append(executor.submit(self._conclude, study, packs, stores[study.identity], opening))

            def on_result(pack: Pack, result: PackResult) -> None:
                nonlocal saved
                study = by_identity[pack.study]
                stores[pack.study].save(pack, result)
                saved += 1
                results[pack.study][pack.index] = result
                self.progress.advance(study, len(pack.trials), len(result.failures))
                conclude_if_whole(study)

            for study in studies:
                conclude_if_whole(study)
            try:
                if jobs:
                    run_jobs(jobs, self.workers, on_result)
                for study in studies:
                    if not study.budget.drawn_up_front:  # one after another: each has the cluster for its time
                        found = results[study.identity]
                        search_study(study, found, self.workers, on_result)
                        tried = tuple(found[index].hparams or {} for index in sorted(found))
                        self.searched[study.identity] = replace(study, tried=tried)
                        begin_to_conclude(self.searched[study.identity])
            except (Interrupted, KeyboardInterrupt):
                raise Interrupted(
                    f"stopped. {saved} of {sum(len(study.packs) for study in studies)} packs are saved in "
                    f"{self.directory}.\nThe same command continues from there."
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
