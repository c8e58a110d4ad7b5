"""A whole run: plan, search, conclude and record all studies that were asked for together.

A finished pack goes to disk, a concluded study into the outbox, and from there into the record. Whenever a driver dies,
one of the three has the work, and the same command takes it up there.
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from oodbench.driver.concluder import Concluder
from oodbench.driver.progress import Progress
from oodbench.driver.work import Work
from oodbench.errors import Interrupted, Unwritable
from oodbench.record.outbox import Outbox
from oodbench.record.tracking import Record
from oodbench.search import cluster, resolve_device, run_jobs, search_study
from oodbench.search.packstore import PackStore
from oodbench.settings.option import option
from oodbench.study.claim import Claims
from oodbench.study.pack import Pack, PackResult
from oodbench.study.plan import StudySpec, plan
from oodbench.study.spec import Place, Resources
from oodbench.study.study import Study

UNWRITABLE = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Workplace(Place):
    """Where the record is, and what is done with what it has."""

    fresh: bool = option(False, "Run again what is finished or half-finished.")
    no_stability: bool = option(False, "Do not look how stable the chosen models are, which may take minutes.")
    progress: Progress | None = None  # who is told how it goes


class Driver:
    """One search for all studies of a run: Ray starts once, data is made once."""

    def __init__(self, resources: Resources, place: Workplace) -> None:
        self.resources, self.directory, self.fresh = resources, place.folder, place.fresh
        self.stability = not place.no_stability
        self.progress = place.progress or Progress()
        self.record = Record(place.tracking_uri, self.directory)
        self.outbox, self.claims = Outbox(self.directory), Claims(self.directory)
        self.failures: dict[str, str] = {}  # label on dataset -> why the study has no result
        self.undelivered: list[str] = []  # studies that wait in the outbox for the record to be back
        self._saved = "Finished work is kept"
        self._unwritable: OSError | None = None

    def drive(self, specs: Sequence[StudySpec]) -> list[Study]:
        """The studies, in the order of their specs: all concluded, and in the record or `undelivered`."""
        try:
            return self._drive(specs)
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

    def plan(self, specs: Sequence[StudySpec]) -> list[Study]:
        """What would be driven: all of it is checked, and nothing is begun."""
        with contextlib.ExitStack() as stack:
            return self._plan(specs, stack)

    def _plan(self, specs: Sequence[StudySpec], stack: contextlib.ExitStack) -> list[Study]:
        if self.resources.address is not None:  # what the cluster has decides about the device
            stack.enter_context(cluster(self.resources.address))
        device = resolve_device(self.resources.device, self.resources.address)
        self.progress.stage("making the data")
        return plan(specs, device)

    def _drive(self, specs: Sequence[StudySpec]) -> list[Study]:
        with contextlib.ExitStack() as stack:
            studies = self._plan(specs, stack)
            works = {study.study_id: Work(study, PackStore(self.directory, study)) for study in studies}
            self.progress.plan([work.study for work in works.values()], self.record.address)
            self._claim(works.values())
            known_empty = self.record.is_empty  # after claiming: another driver may just have finished
            # opening the record takes seconds when it is new: meanwhile the search starts
            opening = stack.enter_context(ThreadPoolExecutor(1, "record")).submit(lambda: self.record.client)
            concluder = Concluder(
                self.outbox, self.record, opening, self.claims, self.progress, self.fresh, self.stability
            )
            pending = self._pending(list(works.values()), concluder, opening, known_empty)
            if pending:
                self.progress.stage("starting Ray" if self.resources.address is None else "connecting")
                with concluder:
                    with cluster(self.resources.address):  # which ends while the last study is concluded
                        self._search(pending, concluder)
                    concluder.wait()
            else:
                self.progress.stage("all of it is in the record already, --fresh runs it again")
        concluder.deliver_rest()
        self.failures |= concluder.failures
        self.undelivered = [parcel.title for parcel in concluder.undelivered]
        self.progress.finish()
        return [works[study.study_id].study for study in studies]

    def _claim(self, works: Iterable[Work]) -> None:
        """Have the studies to ourselves; where another driver is at one, wait for it to finish or to die."""
        for study in sorted((work.study for work in works), key=lambda study: study.study_id):
            if not self.claims.take(study.study_id, wait=False):
                self.progress.stage(f"another run works on {study.label} on {study.dataset_id}: waiting for it")
                self.claims.take(study.study_id, wait=True)

    def _pending(self, works: list[Work], concluder: Concluder, opening: Future[Any], known_empty: bool) -> list[Work]:
        """The studies that have to be run; of the others, what is not in the record yet is delivered."""
        parcels = [parcel for parcel in self.outbox.parcels() if parcel.destination == self.record.destination]
        if parcels or not known_empty:
            opening.result()
        concluded = concluder.deliver_earlier(parcels)
        if self.fresh:
            self._claim(works)
            return works
        if not known_empty:
            concluded |= self.record.finished([work.study for work in works])
        for work in works:
            if work.study.study_id in concluded:
                work.store.discard()  # a driver may have died just before
                self.claims.release(work.study.study_id)
        own = {work.study.study_id for work in works}
        failed = [parcel for parcel in parcels if parcel.record.reason and parcel.study_id in own]
        self.failures |= {parcel.title: parcel.record.reason for parcel in failed}
        return [work for work in works if work.study.study_id not in concluded]

    def _search(self, works: list[Work], concluder: Concluder) -> None:
        """Run the packs that are not finished yet; begin to conclude each study when its last pack is there."""
        self._started = time.time()
        concluder.warm_up()
        for work in works:
            work.begin(self.fresh)
        finished = [pack for work in works for pack in work.finished_packs]
        self.progress.begin(sum(work.study.portions for work in works), sum(len(pack.trials) for pack in finished))
        self._packs_saved, self._works = len(finished), works
        up_front = [work for work in works if work.study.budget.drawn_up_front]
        for work in up_front:
            self._conclude_if_searched(work, concluder)
        by_id = {work.study.study_id: work for work in works}

        def receive(pack: Pack, result: PackResult) -> None:
            self._receive(by_id[pack.study_id], pack, result, concluder)

        try:
            self._run_packs(up_front, receive, concluder)
            for work in works:
                if work not in up_front:  # one after another: each has the cluster for its time
                    search_study(work.study, work.results, self.resources, receive)
                    work.settle_configurations()
                    concluder.begin(work, self._started)
            self._saved = f"All {self._packs} packs are saved"
        except Exception:
            if self._unwritable is not None:
                raise self._unwritable from None  # Ray wraps what a callback raises
            raise
        finally:
            self.progress.end()

    def _run_packs(
        self, works: Sequence[Work], receive: Callable[[Pack, PackResult], None], concluder: Concluder
    ) -> None:
        """All that are known; of searches by halving, rung by rung."""
        while jobs := [job for work in works for job in work.missing_jobs()]:
            run_jobs(jobs, self.resources, receive)
            for work in works:
                if work.climb():
                    self._conclude_if_searched(work, concluder)

    def _receive(self, work: Work, pack: Pack, result: PackResult, concluder: Concluder) -> None:
        """A pack came back: it is saved, and with the last one its study is concluded."""
        try:
            work.save(pack, result)
        except OSError as error:
            self._unwritable = error
            raise
        self._packs_saved += 1
        self._saved = f"{self._packs_saved} of {self._packs} packs are saved"
        self.progress.advance(work.study, len(pack.trials), len(result.failures))
        self._conclude_if_searched(work, concluder)

    @property
    def _packs(self) -> int:
        """Those of all rungs that are decided on."""
        return sum(len(work.study.packs) for work in self._works)

    def _conclude_if_searched(self, work: Work, concluder: Concluder) -> None:
        if work.is_searched:
            concluder.begin(work, self._started)
