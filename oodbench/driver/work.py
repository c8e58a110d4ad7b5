"""A study on its way through a run, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from oodbench.engine.checkpoint import Checkpoint
from oodbench.search.jobs import Job, job_of
from oodbench.search.keeping import SECONDS as KEEP_SECONDS
from oodbench.search.keeping import KeepAt
from oodbench.search.packstore import PackStore
from oodbench.study.pack import Pack, PackResult
from oodbench.study.study import Study


class State(StrEnum):
    """Each state but the first leaves something on disk, so that after a kill the same command goes on from there."""

    PLANNED = "planned"
    SEARCHING = "searching"  # finished packs, in the study's folder
    CONCLUDED = "concluded"  # the choice, written down before the test environments were opened
    PARCELLED = "parcelled"  # all that the record will have, in the outbox
    RECORDED = "recorded"  # in the record


@dataclass(eq=False)
class Work:
    study: Study
    store: PackStore
    state: State = State.PLANNED
    results: dict[int, PackResult] = field(default_factory=dict)  # of finished packs, without models

    def begin(self, fresh: bool) -> None:
        """Take up what an earlier run finished, unless it is to be done again."""
        if fresh:
            self.store.discard()
        else:
            self.study = self.store.take_up()
        self.results = self.store.load()
        self.state = State.SEARCHING
        self.climb()

    @property
    def finished_packs(self) -> list[Pack]:
        return [pack for pack in self.study.packs if pack.index in self.results]

    @property
    def is_searched(self) -> bool:
        """Whether all packs are there. A search that decides on the way is over when it says so."""
        return self.study.budget.drawn_up_front and self.study.at_top and self._has_all

    @property
    def _has_all(self) -> bool:
        return len(self.results) == len(self.study.packs)

    def climb(self) -> bool:
        """Of a search by halving: decide on as many rungs as the finished packs allow. Whether that is any."""
        before = len(self.study.climbed)
        while self._has_all and not self.study.at_top:
            self.study = self.store.study = self.study.climb(self.results)
            self.results |= self.store.load(len(self.study.climbed))
        return len(self.study.climbed) > before

    def missing_jobs(self) -> list[Job]:
        checkpoints: dict[int, Checkpoint | None] = {}

        def paused(pack: Pack) -> Checkpoint | None:
            if pack.index not in checkpoints:  # several packs go on from it
                checkpoints[pack.index] = self.store.checkpoint(pack)
            return checkpoints[pack.index]

        missing = [pack for pack in self.study.packs if pack.index not in self.results]
        jobs = [job_of(self.study, pack, paused) for pack in missing]
        if not self.study.method.pauses or not jobs:
            return jobs
        self.store.make_folder()
        return [replace(job, keep_at=KeepAt(self.store.kept_path(job.pack), KEEP_SECONDS)) for job in jobs]

    def save(self, pack: Pack, result: PackResult) -> None:
        self.results[pack.index] = self.store.save(pack, result)

    def settle_configurations(self) -> None:
        """Of a search that decided on the way: the study is the one with the configurations that it tried."""
        tried = tuple(self.results[index].hparams or {} for index in sorted(self.results))
        self.study = replace(self.study, tried=tried)
