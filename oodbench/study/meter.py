"""The metrics that chosen models get besides their scores, and why values are missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.asking import ask, probabilities_of
from oodbench.engine.metric import Metric
from oodbench.engine.said import hear
from oodbench.errors import one_line
from oodbench.plugin.registry import plugins

if TYPE_CHECKING:
    from oodbench.engine.data import Environment, Task
    from oodbench.engine.predictor import Predictor


class Meter:
    """Measures predictors by metrics. A metric or a predictor that fails costs a value, and
    nothing else: the value is NaN, and `missing` has the first reason by metric."""

    def __init__(self, metrics: Mapping[str, Metric], classes: int, missing: Mapping[str, str] | None = None) -> None:
        self.metrics, self.classes = metrics, classes
        self.missing = dict(missing or {})

    @classmethod
    def of_task(cls, task: Task, classes: int) -> Meter:
        """With every metric that is installed for the task."""
        found = plugins("metric")
        usable = {plugin.name: plugin.cls for plugin in found if plugin.cls is not None and task in plugin.cls.tasks}
        broken = {plugin.name: f"the metric is broken: {plugin.broken}" for plugin in found if plugin.broken}
        return cls(usable, classes, broken)

    def measure(self, predictor: Predictor, environment: Environment) -> dict[str, float]:
        answers: dict[str, NDArray[Any] | Exception] = {}
        predictor = hear(predictor, environment)
        return {name: self._value(name, predictor, environment, answers) for name in self.metrics}

    def _value(
        self,
        name: str,
        predictor: Predictor,
        environment: Environment,
        answers: dict[str, NDArray[Any] | Exception],
    ) -> float:
        """`answers` keeps what the predictor said of the environment: it is asked once for each kind."""
        metric = self.metrics[name]
        if metric.needs not in answers:
            answers[metric.needs] = self._ask(predictor, metric.needs, environment)
        said = answers[metric.needs]
        if isinstance(said, Exception):
            self.missing.setdefault(name, _reason(said))
            return math.nan
        try:
            weights = None if environment.weights is None else _sealed(environment.weights)
            value = metric(_sealed(environment.y), said, weights)
            if not isinstance(value, Real) or not math.isfinite(value):
                raise ValueError(f"its value is {value!r:.60}")
        except (Exception, SystemExit) as error:  # of a plug-in, or no value for such rows
            self.missing.setdefault(name, f"environment {environment.name!r}: {_reason(error)}")
            return math.nan
        return float(value)

    def _ask(self, predictor: Predictor, needs: str, environment: Environment) -> NDArray[Any] | Exception:
        try:
            if needs == "probabilities":
                return _sealed(probabilities_of(predictor, environment.x, self.classes))
            return _sealed(np.asarray(ask(predictor, "predict", environment.x)))
        except Exception as error:
            return error


def _sealed(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _reason(error: BaseException) -> str:
    """A ValueError is how metrics say why; other errors need their type."""
    return " ".join(str(error).split()) if type(error) is ValueError and str(error) else one_line(error)
