"""Who proposes configurations while a search goes on: chance or optuna, within the budget."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oodbench.engine.trial import training_entropy
from oodbench.search.worker import validation_score
from oodbench.settings.space import Choice, Dimension, Integer, LogInteger, LogUniform, Value
from oodbench.study.pack import PackResult

if TYPE_CHECKING:
    from oodbench.study.study import Study

BATCH = 8  # configurations that optuna proposes at a time


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
        return IntDistribution(int(low), int(high), log=isinstance(dimension, LogInteger))
    return FloatDistribution(low, high, log=isinstance(dimension, LogUniform))
