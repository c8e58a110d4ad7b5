"""Searches that decide on the way: what to try next, what to stop early, or when the time is over.

One Tune trial is one configuration on all seeds. A search by optuna proposes in batches, and learns of a batch when
all of it is there: what it proposes does not depend on which worker was faster. Early stopping is asynchronous and
does. At each rung a training pauses, and goes on from there if it is not stopped; a method that cannot pause is trained
anew with more steps, and all of them count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oodbench.errors import Interrupted
from oodbench.search.proposals import Clock, Proposals
from oodbench.study.pack import Pack, PackResult
from oodbench.study.spec import Resources

if TYPE_CHECKING:
    from oodbench.study.study import Study

RUNGS = (1, 4, 16)  # where ASHA looks: sixteenths of the steps
REDUCTION = 4  # one in so many goes on from a rung


def search_study(
    study: Study, done: Mapping[int, PackResult], resources: Resources, on_result: Callable[[Pack, PackResult], None]
) -> None:
    """Search, from what an earlier run finished, and hand each configuration's result to `on_result`."""
    from oodbench.search.nodes import check_room, check_software, count_room
    from oodbench.search.queues import ConfigurationQueue
    from oodbench.search.trainable import fault_in_sending, ship_study, train_configuration
    from oodbench.search.tuning import Watch, tune_all

    fault = fault_in_sending(study.method)
    if fault:
        for index, hparams in enumerate(study.configurations):
            lost = PackResult.failed(study.budget.seeds, fault, study.setup.device)
            on_result(study.configuration_pack(index, hparams), replace(lost, hparams=hparams))
        return
    of_a_pack = resources.of_a_pack(study.setup.device)
    check_room(of_a_pack)
    if resources.address is not None:
        check_software([study.method])
    clock = Clock(study.budget.seconds, max((result.clock for result in done.values()), default=0.0))
    proposals = Proposals(study, done, clock)
    if proposals.over:
        return
    queue = ConfigurationQueue(proposals, count_room(of_a_pack))
    arrivals = _Arrivals(study, proposals, clock, on_result)
    seconds = resources.timeout * study.budget.seeds
    tune_all(
        train_configuration,
        {
            **ship_study(study),
            "rungs": arrivals.rungs,
            "threads": resources.threads,
            "timed": seconds < math.inf or study.budget.seconds is not None,
        },
        lambda config: of_a_pack,
        Watch(arrivals.note, arrivals.give_up, lambda config: seconds, queue, clock.start, arrivals.deliver),
        lambda: _make_scheduler(study.budget.scheduler),
    )
    if not queue.exhausted:
        raise Interrupted(f"stopped while searching {study.label}.")


def _make_scheduler(name: str) -> Any:
    from ray.tune.schedulers import ASHAScheduler

    return ASHAScheduler("rung", "score", "min", RUNGS[-1], RUNGS[0], REDUCTION) if name == "asha" else None


class _Arrivals:
    """What came back of the configurations, rung by rung."""

    def __init__(
        self, study: Study, proposals: Proposals, clock: Clock, on_result: Callable[[Pack, PackResult], None]
    ) -> None:
        self.study, self.proposals, self.clock, self.on_result = study, proposals, clock, on_result
        self.rungs = RUNGS if study.budget.scheduler == "asha" else RUNGS[-1:]
        self._newest: dict[int, PackResult] = {}  # configuration -> what its last rung came to

    def note(self, config: Mapping[str, Any], report: Mapping[str, Any]) -> None:
        self._newest[config["configuration"]] = replace(report["pack"], stopped=report["rung"] < self.rungs[-1])

    def give_up(self, config: Mapping[str, Any], reason: str) -> None:
        before = self._newest.get(config["configuration"])
        lost = PackResult.failed(self.study.budget.seeds, reason, self.study.setup.device)
        if before is not None:
            lost = replace(lost, gradient_steps=before.gradient_steps, row_visits=before.row_visits)
        self._newest[config["configuration"]] = lost
        self.deliver(config)

    def deliver(self, config: Mapping[str, Any]) -> None:
        index, hparams = config["configuration"], config["hparams"]
        result = self._newest.pop(index, None)
        if result is None:  # the user stopped the run before its first report
            return
        result = replace(result, hparams=hparams, clock=self.clock.used)
        self.proposals.learn(index, result)
        self.on_result(self.study.configuration_pack(index, hparams), result)
