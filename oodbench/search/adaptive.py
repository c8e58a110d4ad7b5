"""Searches that decide on the way: what to try next, what to stop early, or when the time is over.

One Tune trial is one configuration on all seeds. A search by optuna proposes in batches, and learns of a batch when
all of it is there: what it proposes does not depend on which worker was faster. Early stopping is asynchronous and
does. The engine cannot pause a training: at each rung it is trained anew with more steps, and all of them count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oodbench.errors import Interrupted
from oodbench.space import Choice, Dimension, Integer, LogUniform, Value
from oodbench.trial import Pack, PackResult, training_entropy
from oodbench.worker import validation_score
from oodbench.workers import Workers

if TYPE_CHECKING:
    from oodbench.study import Study

BATCH = 8  # configurations that optuna proposes at a time
RUNGS = (1, 4, 16)  # where ASHA looks: sixteenths of the steps
REDUCTION = 4  # one in so many goes on from a rung


def search_study(
    study: Study, done: Mapping[int, PackResult], workers: Workers, on_result: Callable[[Pack, PackResult], None]
) -> None:
    """Search, from what an earlier run finished, and hand each configuration's result to `on_result`."""
    from ray.tune.schedulers import ASHAScheduler

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
    resources = workers.resources(study.setup.device)
    check_room(resources)
    if workers.address is not None:
        check_software([study.method])
    clock = Clock(study.budget.seconds, max((result.clock for result in done.values()), default=0.0))
    proposals = Proposals(study, done, clock)
    if proposals.over:
        return
    queue = ConfigurationQueue(proposals, count_room(resources))
    rungs = RUNGS if study.budget.scheduler == "asha" else RUNGS[-1:]
    newest: dict[int, PackResult] = {}  # configuration -> what its last rung came to

    def note(config: Mapping[str, Any], report: Mapping[str, Any]) -> None:
        newest[config["configuration"]] = replace(report["pack"], stopped=report["rung"] < rungs[-1])

    def give_up(config: Mapping[str, Any], reason: str) -> None:
        before = newest.get(config["configuration"])
        lost = PackResult.failed(study.budget.seeds, reason, study.setup.device)
        if before is not None:
            lost = replace(lost, gradient_steps=before.gradient_steps, row_visits=before.row_visits)
        newest[config["configuration"]] = lost
        deliver(config)

    def deliver(config: Mapping[str, Any]) -> None:
        index, hparams = config["configuration"], config["hparams"]
        result = newest.pop(index, None)
        if result is None:  # the user stopped the run before its first report
            return
        result = replace(result, hparams=hparams, clock=clock.used)
        proposals.learn(index, result)
        on_result(study.configuration_pack(index, hparams), result)

    def make_scheduler() -> Any:
        if study.budget.scheduler != "asha":
            return None
        return ASHAScheduler("rung", "score", "min", RUNGS[-1], RUNGS[0], REDUCTION)

    seconds = math.inf if workers.trial_timeout is None else workers.trial_timeout * study.budget.seeds
    tune_all(
        train_configuration,
        {
            **ship_study(study),
            "rungs": rungs,
            "threads": workers.threads,
            "timed": seconds < math.inf or study.budget.seconds is not None,
        },
        resources,
        Watch(note, give_up, lambda config: seconds, queue, clock.start, deliver),
        make_scheduler,
    )
    if not queue.exhausted:
        raise Interrupted(f"stopped while searching {study.label}.")


class Clock:
    """A study's time. It runs from the first training on: starting workers is not the method's affair."""

    def __init__(self, limit: float | None, used_before: float) -> None:
        self._limit = math.inf if limit is None else limit
        self._before, self._started = used_before, math.nan

    def start(self) -> None:
        if math.isnan(self._started):
            self._started = time.monotonic()

    @property
    def used(self) -> float:
        return self._before + (0.0 if math.isnan(self._started) else time.monotonic() - self._started)

    @property
    def over(self) -> bool:
        return self.used >= self._limit


class Proposals:
    """The configurations of a study, in their order: random ones, all there are, or optuna's."""

    def __init__(self, study: Study, done: Mapping[int, PackResult], clock: Clock) -> None:
        self.study, self._clock = study, clock
        self._left = [index for index in range(len(study.configurations)) if index not in done]
        self._begun = max(done, default=-1)  # those before it were begun in time, too
        self._open: dict[int, PackResult | None] = {}  # proposed, and not yet told to optuna
        self._optuna: Any = (
            None if study.budget.search == "random" or study.whole_space else _optuna(study, 0 not in done)
        )
        for index in sorted(done):
            self._tell_point(done[index])

    @property
    def over(self) -> bool:
        """Whether the budget is used."""
        return not self._left or (self._clock.over and self._left[0] > self._begun)

    def next(self) -> tuple[int, dict[str, Value]] | None:
        """A configuration and its number, or None while optuna waits for a batch."""
        if self._optuna is None:
            index = self._left.pop(0)
            return index, self.study.configurations[index]
        if len(self._open) >= BATCH:
            return None
        index = self._left.pop(0)
        self._open[index] = None
        proposed = self._optuna.suggest(str(index))
        space = self.study.space
        return index, {
            name: self.study.decided[name]
            if name in self.study.decided
            else space[name].parse(proposed[name])
            if name in proposed
            else space[name].default
            for name in space
        }

    def learn(self, index: int, result: PackResult) -> None:
        if self._optuna is None:
            return
        self._open[index] = result
        if len(self._open) < BATCH or None in self._open.values():
            return
        for number in sorted(self._open):
            self._tell(number, self._open[number])
        self._open.clear()

    def _tell(self, index: int, result: PackResult | None) -> None:
        assert result is not None
        score = validation_score(result, self.study.selector)
        if math.isnan(score):
            self._optuna.on_trial_complete(str(index), error=True)
        elif result.stopped:
            self._optuna.on_trial_result(str(index), {"score": score, "training_iteration": 1})
            self._optuna.on_trial_complete(str(index))
        else:
            self._optuna.on_trial_complete(str(index), {"score": score})

    def _tell_point(self, result: PackResult) -> None:
        """What an earlier run found."""
        if self._optuna is None or result.hparams is None:
            return
        score = validation_score(result, self.study.selector)
        point = {name: result.hparams[name] for name in _distributions(self.study)}
        kept = [score] if result.stopped and not math.isnan(score) else None
        self._optuna.add_evaluated_point(
            point, None if kept else score, error=math.isnan(score), pruned=result.stopped, intermediate_values=kept
        )


def _optuna(study: Study, defaults_first: bool) -> Any:
    import optuna
    from ray.tune.search.optuna import OptunaSearch

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    distributions = _distributions(study)
    defaults = {name: study.configurations[0][name] for name in distributions}
    return OptunaSearch(
        distributions,
        metric="score",
        mode="min",
        points_to_evaluate=[defaults] if defaults_first else None,
        seed=training_entropy(study.method_name, 0, study.budget.seed, study.budget.repeat),
    )


def _distributions(study: Study) -> dict[str, Any]:
    return {
        name: _distribution(dimension)
        for name, dimension in study.space.items()
        if dimension.searched and name not in study.decided
    }


def _distribution(dimension: Dimension) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(dimension, Choice):
        return CategoricalDistribution(dimension.values)
    low, high = dimension.low, dimension.high  # type: ignore[attr-defined]
    if isinstance(dimension, Integer):
        return IntDistribution(int(low), int(high))
    return FloatDistribution(low, high, log=isinstance(dimension, LogUniform))
