"""From a finished search to the record, in a thread of its own: other studies are searched meanwhile."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any

from oodbench.driver.progress import Progress
from oodbench.driver.work import State, Work
from oodbench.errors import Interrupted, TrackingFailed, Unreachable
from oodbench.record.delivery import deliver
from oodbench.record.outbox import Outbox
from oodbench.record.parcel import Parcel
from oodbench.record.tracking import Record
from oodbench.study.claim import Claims
from oodbench.study.outcome import conclude


class Concluder:
    """Takes studies whose search is over; between its steps it stops if the run is stopped."""

    def __init__(
        self,
        outbox: Outbox,
        record: Record,
        opening: Future[Any],
        claims: Claims,
        progress: Progress,
        fresh: bool,
        stability: bool = True,
    ) -> None:
        self.outbox, self.record, self.claims, self.progress = outbox, record, claims, progress
        self.opening, self.fresh, self.stability = opening, fresh, stability
        self.failures: dict[str, str] = {}  # label on dataset -> why the study has no result
        self.undelivered: list[Parcel] = []
        self._stopping = threading.Event()
        self._concluding: list[Future[None]] = []

    def __enter__(self) -> Concluder:
        self._executor = ThreadPoolExecutor(1, "conclude")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, Interrupted | KeyboardInterrupt):
            self._stopping.set()
        self._executor.shutdown(cancel_futures=self._stopping.is_set())

    def warm_up(self) -> None:
        """Import what is needed to conclude and to compare, which takes seconds."""
        for needed in ("torch", "scipy.stats"):
            self._executor.submit(importlib.import_module, needed)

    def begin(self, work: Work, started: float) -> None:
        self._concluding.append(self._executor.submit(self._conclude, work, started))

    def wait(self) -> None:
        """Until all that was begun is concluded; raises what went wrong."""
        wait(self._concluding)
        for future in self._concluding:
            future.result()

    def _conclude(self, work: Work, started: float) -> None:
        predictors, write_down = work.store.predictors(), work.store.write_selection
        outcome = conclude(
            work.study, work.results, predictors, write_down, started, self.stability, self.progress.stage
        )
        work.state = State.CONCLUDED
        self._go_on()
        parcel = self.outbox.put(outcome, self.record.destination, self.fresh)
        work.state = State.PARCELLED
        work.store.retire(useful=not outcome.record.reason)
        if outcome.record.reason:
            self.failures[parcel.title] = outcome.record.reason
        wait([self.opening])  # delivering opens the record again, where that failed
        if self.deliver(parcel):
            work.state = State.RECORDED

    def deliver(self, parcel: Parcel) -> bool:
        """Into the record, if it takes it; otherwise it stays in the outbox, and the run goes on."""
        self.record.keep(parcel)
        try:
            deliver(self.record, parcel, self._go_on)
        except (TrackingFailed, Unreachable) as error:
            if not self.undelivered:
                self.progress.note(f"{parcel.title} is kept for later: {str(error).partition(chr(10))[0]}")
            self.undelivered.append(parcel)
            return False
        self.outbox.remove(parcel)
        self.claims.release(parcel.study_id)  # others may wait for it
        return True

    def deliver_earlier(self, parcels: Sequence[Parcel]) -> set[str]:
        """What earlier runs left in the outbox for this record; the studies that are concluded with that."""
        concluded = set()
        for parcel in parcels:
            if not self.claims.take(parcel.study_id, wait=False):  # another driver is at it
                continue
            if parcel.is_there:
                self.deliver(parcel)
                concluded.add(parcel.study_id)
            else:  # another driver delivered it after we had read it
                self.claims.release(parcel.study_id)
        return concluded

    def deliver_rest(self) -> None:
        """What the record did not take at first: it may be back."""
        rest, self.undelivered = self.undelivered, []
        for parcel in rest:
            if not self.deliver(parcel):  # not back
                self.undelivered = rest[rest.index(parcel) :]
                return

    def _go_on(self) -> None:
        if self._stopping.is_set():
            raise Interrupted("stopped.")
