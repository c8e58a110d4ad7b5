"""What a metric is: a function of the targets and the answers of one environment, with a direction."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from oodbench.engine.data import TASKS, Task

Better = Literal["higher", "lower"]
Needs = Literal["predictions", "probabilities"]
Formula = Callable[..., float]
"""Of the targets y [row], and predictions [row] or probabilities [row, class]; perhaps of `weights` [row] too."""

WEIGHTS = "weights"  # the parameter of a formula

TAKEN = frozenset(
    "configuration seed part environment rows loss error accuracy f1 stability ods chosen".split()
)  # columns that all results have: no other metric can have such a name


@dataclass(frozen=True)
class Metric:
    """A metric, as `oodbench.metric` makes it. It is called with targets and answers."""

    formula: Formula
    tasks: tuple[Task, ...]
    better: Better
    needs: Needs = "predictions"

    def __post_init__(self) -> None:
        for value, known in ((self.better, get_args(Better)), (self.needs, get_args(Needs))):
            if value not in known:
                raise ValueError(f"a metric has {' or '.join(map(repr, known))}, not {value!r}")
        if not self.tasks or not set(self.tasks) <= set(TASKS):
            raise ValueError(f"the tasks of a metric are some of {', '.join(TASKS)}, not {self.tasks!r}")
        object.__setattr__(self, "__doc__", self.formula.__doc__)

    def __call__(self, y: NDArray[Any], answers: NDArray[Any], weights: NDArray[Any] | None = None) -> float:
        if weights is None:
            return self.formula(y, answers)
        if not self.takes_weights:
            raise ValueError(f"rows have weights, and the metric has no parameter {WEIGHTS}")
        return self.formula(y, answers, weights=weights)

    @property
    def takes_weights(self) -> bool:
        """Whether it can count rows by their weights."""
        return WEIGHTS in inspect.signature(self.formula).parameters

    @property
    def higher_is_better(self) -> bool:
        return self.better == "higher"


def metric(*tasks: Task, better: Better, needs: Needs = "predictions") -> Callable[[Formula], Metric]:
    """Make a metric of a function `(y, predictions)`, or `(y, probabilities)` where it needs these.

    It gets the rows of one environment: targets [row], and predictions [row] or probabilities [row, class]. Where it
    has no value, it raises ValueError with the reason: boards then show the cell as missing, and the reason in a note.
    Where rows have weights, it gets them [row] as its parameter `weights`; if it has none, it has no value there.

    Args:
        tasks: What it is for: "regression", "classification", or both.
        better: "higher" or "lower".
        needs: "predictions" or "probabilities".

    Examples:
        >>> @oodbench.metric("regression", better="lower")
        ... def median_error(y, predicted):
        ...     return np.median(np.abs(y - predicted))
    """

    def make(formula: Formula) -> Metric:
        return Metric(formula, tasks, better, needs)

    return make
