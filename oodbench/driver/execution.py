"""The whole way, once: plan, search, select, evaluate, record, for all that was asked for together.

A finished pack goes to disk, a concluded study into the outbox, and from there into the record. Whatever moment a
driver dies at, one of the three has the work, and the same command takes it up there.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodbench.driver.progress import Progress
from oodbench.errors import Interrupted, TrackingFailed, Unreachable, Unwritable
from oodbench.record.outbox import Outbox
from oodbench.record.parcel import Parcel
from oodbench.study.claim import Claims
from oodbench.study.plan import Request, plan
from oodbench.study.resources import Resources
from oodbench.study.study import Study

UNWRITABLE = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST,
}  # fmt: skip

if TYPE_CHECKING:
    from oodbench.search.packstore import PackStore
    from oodbench.study.pack import Pack, PackResult


class Execution:
    """The requests of one run, with what its steps share. They are one search: Ray starts once, data is made once."""

    def __init__(
        self,
        requests: Sequence[Request],
        resources: Resources,
        tracking_uri: str | None,
        directory: Path,
        fresh: bool,
        progress: Progress,
    ) -> None:
        self.requests, self.resources, self.fresh, self.progress = requests, resources, fresh, progress
        self.tracking_uri, self.directory = tracking_uri, directory
        self.failures: dict[str, str] = {}
        self.searched: dict[str, Study] = {}  # by identity, with the configurations that the search decided on
        self.undelivered: list[Parcel] = []
        self.outbox, self.claims = Outbox(directory), Claims(directory)
        self._stopping = threading.Event()
        self._saved = "Finished work is kept"

    def execute(self) -> list[list[Study]]:
        """The studies of each request, all of them concluded, and in the record or `undelivered`."""
        try:
            return self._execute()
        except (Interrupted, KeyboardInterrupt):
            raise Interrupted(
                f"stopped. {self._saved} in {self.directory}.\nThe same command continues from there."
            ) from None
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            raise Unwritable(self.directory, error) from error
        finally:
            self.claims.release_all()

    def _execute(self) -> list[list[Study]]:
        from oodbench.record.tracking import Record
        from oodbench.search import cluster, resolve_device

        for request in self.requests:
            request.check()
        self.resources.check(self.requests[0].device)
        address = self.resources.address
        self.record = Record(self.tracking_uri, self.directory)
        with contextlib.ExitStack() as stack:
            if address is not None:  # what the cluster has decides about the device
                stack.enter_context(cluster(address))
            device = resolve_device(self.requests[0].device, address)
            self.progress.stage("making the data")
            planned = plan(self.requests, device)
            # requests may have studies in common
            studies = list({study.study_id: study for some in planned for study in some}.values())
            self.progress.plan(studies, self.record.address)
            self._claim(studies)
            known_empty = self.record.is_empty  # after claiming: another driver may just have finished
            # opening the record takes seconds when it is new: meanwhile the search starts
            opener = stack.enter_context(ThreadPoolExecutor(1, "record"))
            opening = opener.submit(lambda: self.record.client)
            pending = self._pending(studies, opening, known_empty)
            if pending:
                self.progress.stage("starting Ray" if address is None else "connecting")
                stack.enter_context(cluster(address))
                self._search(pending, opening)
            else:
                self.progress.stage("all of it is in the record already, --fresh runs it again")
        self._deliver_rest()
        self.progress.finish()
        return [[self.searched.get(study.study_id, study) for study in some] for some in planned]

    def _claim(self, studies: list[Study]) -> None:
        """Have the studies to ourselves; where another driver is at one, wait for it to finish or to die."""
        for study in sorted(studies, key=lambda study: study.study_id):
            if not self.claims.take(study.study_id, wait=False):
                self.progress.stage(f"another run works on {study.label} on {study.dataset_id}: waiting for it")
                self.claims.take(study.study_id, wait=True)

    def _pending(self, studies: list[Study], opening: Future[Any], known_empty: bool) -> list[Study]:
        """The studies that have to be run; of the others, what is not in the record yet is delivered."""
        from oodbench.search.packstore import PackStore

        parcels = [parcel for parcel in self.outbox.parcels() if parcel.destination == self.record.destination]
        concluded: set[str] = set()
        if parcels or not known_empty:
            opening.result()
        for parcel in parcels:
            if self.claims.take(parcel.study_id, wait=False):  # otherwise another driver is at it
                self._deliver(parcel)
                concluded.add(parcel.study_id)
        if self.fresh:
            self._claim(studies)
            return studies
        if not known_empty:
            concluded |= self.record.finished(studies)
        for study in studies:
            if study.study_id in concluded:
                PackStore(self.directory, study).discard()  # a driver may have died just before
                self.claims.release(study.study_id)
        own = {study.study_id for study in studies}
        self.failures |= {
            parcel.title: parcel.record.reason for parcel in parcels if parcel.record.reason and parcel.study_id in own
        }
        return [study for study in studies if study.study_id not in concluded]

    def _search(self, studies: list[Study], opening: Future[Any]) -> None:
        """Run the packs that are not finished yet; conclude each study when its last pack is there."""
        from oodbench.search import Job, run_jobs, search_study
        from oodbench.search.packstore import PackStore

        self.started = time.time()

        stores = {study.study_id: PackStore(self.directory, study) for study in studies}
        by_id = {study.study_id: study for study in studies}
        if self.fresh:
            for store in stores.values():
                store.discard()
        results = {study.study_id: stores[study.study_id].load() for study in studies}
        jobs = [
            Job(pack, study.method, study.setup, {seed: study.search_data(seed) for seed in pack.seeds})
            for study in studies
            if study.budget.drawn_up_front
            for pack in study.packs
            if pack.index not in results[study.study_id]
        ]
        finished = [pack for study in studies for pack in study.packs if pack.index in results[study.study_id]]
        self.progress.begin(sum(study.trainings for study in studies), sum(len(pack.trials) for pack in finished))
        saved, total = len(finished), sum(len(study.packs) for study in studies)
        unwritable: list[OSError] = []
        # concluding and recording a study goes on beside the search of the next
        concluding: list[Future[None]] = []
        with ThreadPoolExecutor(1, "conclude") as executor:
            executor.submit(importlib.import_module, "torch")  # takes a second, and is needed to conclude

            def conclude_if_whole(study: Study) -> None:
                if study.budget.drawn_up_front and len(results[study.study_id]) == len(study.packs):
                    begin_to_conclude(study)

            def begin_to_conclude(study: Study) -> None:
                packs = results.pop(study.study_id)
                concluding.append(executor.submit(self._conclude, study, packs, stores[study.study_id], opening))

            def on_result(pack: Pack, result: PackResult) -> None:
                nonlocal saved
                study = by_id[pack.study_id]
                try:
                    results[pack.study_id][pack.index] = stores[pack.study_id].save(pack, result)
                except OSError as error:
                    unwritable.append(error)
                    raise
                saved += 1
                self._saved = f"{saved} of {total} packs are saved"
                self.progress.advance(study, len(pack.trials), len(result.failures))
                conclude_if_whole(study)

            for study in studies:
                conclude_if_whole(study)
            try:
                if jobs:
                    run_jobs(jobs, self.resources, on_result)
                for study in studies:
                    if not study.budget.drawn_up_front:  # one after another: each has the cluster for its time
                        found = results[study.study_id]
                        search_study(study, found, self.resources, on_result)
                        tried = tuple(found[index].hparams or {} for index in sorted(found))
                        self.searched[study.study_id] = replace(study, tried=tried)
                        begin_to_conclude(self.searched[study.study_id])
                self._saved = f"All {total} packs are saved"
                self.progress.end()
                wait(concluding)
            except (Interrupted, KeyboardInterrupt):
                self._stopping.set()
                executor.shutdown(wait=False, cancel_futures=True)
                raise
            except Exception:
                if unwritable:
                    raise unwritable[0] from None  # Ray wraps what a callback raises
                raise
            finally:
                self.progress.end()
        for future in concluding:
            future.result()

    def _conclude(self, study: Study, packs: dict[int, PackResult], store: PackStore, opening: Future[Any]) -> None:
        from oodbench.study.outcome import conclude

        outcome = conclude(study, packs, store.predictors(), store.write_selection, self.started)
        self._go_on()
        parcel = self.outbox.put(outcome, self.record.destination, self.fresh)
        store.discard()
        if outcome.record.reason:
            self.failures[parcel.title] = outcome.record.reason
        wait([opening])  # delivering opens the record again, where that failed
        self._deliver(parcel)

    def _deliver(self, parcel: Parcel) -> None:
        """Into the record, if it takes it; otherwise it stays in the outbox, and the run goes on."""
        from oodbench.record.delivery import deliver

        self.record.keep(parcel)
        try:
            deliver(self.record, parcel, self._go_on)
        except (TrackingFailed, Unreachable) as error:
            if not self.undelivered:
                self.progress.note(f"{parcel.title} is kept for later: {str(error).partition(chr(10))[0]}")
            self.undelivered.append(parcel)
            return
        self.outbox.remove(parcel)
        self.claims.release(parcel.study_id)  # others may wait for it

    def _deliver_rest(self) -> None:
        """What the record did not take at first: it may be back."""
        rest, self.undelivered = self.undelivered, []
        for parcel in rest:
            self._deliver(parcel)
            if self.undelivered:  # not back
                self.undelivered = rest[rest.index(parcel) :]
                return

    def _go_on(self) -> None:
        if self._stopping.is_set():
            raise Interrupted("stopped.")
