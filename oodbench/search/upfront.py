"""Packs drawn up front, on Ray Tune workers.

One Tune trial is one pack. A worker gets the method, the pack and the training and validation arrays of the pack's
seeds through the object store; the result comes back with the report, so that no disk need be shared.
A pack whose worker is lost is run again as it was, and so comes to the same bits. One that is lost each time, or
takes too long, is run trial by trial, so that only those fail which cannot be trained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oodbench.errors import Interrupted
from oodbench.search.jobs import WHOLE, Job
from oodbench.study.pack import Pack, PackResult
from oodbench.study.spec import Resources


def run_jobs(jobs: Sequence[Job], resources: Resources, on_result: Callable[[Pack, PackResult], None]) -> None:
    """Run every pack and hand each result to `on_result` in this process, as it arrives."""
    from oodbench.search.nodes import check_room, check_software
    from oodbench.search.trainable import ship, train_pack
    from oodbench.search.tuning import Watch, tune_all

    jobs = _refuse_unsendable(jobs, on_result)
    if not jobs:
        return
    of_packs = [resources.of_a_pack(job.setup.device) for job in jobs]  # a GPU for those alone that compute on it
    for asked in {tuple(asked.items()): asked for asked in of_packs}.values():
        check_room(asked)
    if resources.address is not None:  # a cluster of our own has what we have
        check_software(job.method for job in jobs)
    arrivals = _Arrivals(jobs, resources.timeout, on_result)
    tune_all(
        train_pack,
        {**ship(jobs), "threads": resources.threads, "timed": resources.trial_timeout is not None},
        lambda config: of_packs[config["job"]],
        Watch(arrivals.report, arrivals.give_up, arrivals.seconds, arrivals.queue),
    )
    if len(arrivals.finished) < len(jobs):
        raise Interrupted(f"stopped with {len(arrivals.finished)} of {len(jobs)} packs finished.")


def _refuse_unsendable(jobs: Sequence[Job], on_result: Callable[[Pack, PackResult], None]) -> list[Job]:
    """The jobs whose method can travel to a worker; the others have failed."""
    from oodbench.search.trainable import fault_in_sending

    methods = {id(job.method): job.method for job in jobs}
    faults = {key: fault_in_sending(method) for key, method in methods.items()}
    for job in jobs:
        fault = faults[id(job.method)]
        if fault:
            on_result(job.pack, PackResult.failed(len(job.pack.trials), fault, job.setup.device))
    return [job for job in jobs if not faults[id(job.method)]]


class _Arrivals:
    """What came back of the packs, whole or trial by trial."""

    def __init__(self, jobs: Sequence[Job], timeout: float, on_result: Callable[[Pack, PackResult], None]) -> None:
        from oodbench.search.queues import PackQueue

        self.jobs, self.timeout, self.on_result = jobs, timeout, on_result
        self.queue = PackQueue(range(len(jobs)))
        self.finished: set[int] = set()
        self._parts: dict[int, dict[int, PackResult]] = {}  # of packs that run trial by trial: position -> result

    def report(self, config: Mapping[str, Any], report: Mapping[str, Any]) -> None:
        self._deliver(config, report["pack"])

    def _deliver(self, config: Mapping[str, Any], result: PackResult) -> None:
        number, position = config["job"], config["position"]
        pack = self.jobs[number].pack
        if number in self.finished:  # a worker that is lost after its report is run again
            return
        if position != WHOLE:
            arrived = self._parts.setdefault(number, {})
            arrived[position] = result
            if len(arrived) < len(pack.trials):
                return
            result = PackResult.joined([((place,), arrived[place]) for place in sorted(arrived)])
            del self._parts[number]
        self.finished.add(number)
        self.on_result(pack, result)

    def give_up(self, config: Mapping[str, Any], reason: str) -> None:
        number, position = config["job"], config["position"]
        job = self.jobs[number]
        if position == WHOLE and len(job.pack.trials) > 1:
            if number not in self.finished:
                self.queue.split(number, len(job.pack.trials))
        else:
            self._deliver(config, PackResult.failed(1, reason, job.setup.device))

    def seconds(self, config: Mapping[str, Any]) -> float:
        """How long a worker may train: a pack as long as its trials one after another."""
        trials = len(self.jobs[config["job"]].pack.trials) if config["position"] == WHOLE else 1
        return self.timeout * trials
