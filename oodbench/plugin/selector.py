"""What a selector is: how a study's configuration is chosen from scores in the validation environments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.data import TASKS, Environment, Task

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.engine.predictor import Predictor


LEFT_OUT = "left_out"
"""The part of rows of models that were trained without an environment, on the training rows of that environment."""
ESTIMATED = "estimated"
"""The part of rows with what a selector, before the choice, estimates of the error in a test environment."""


@dataclass(frozen=True, eq=False)
class Target:
    """What a selector is given of a test environment, if it declares so, and of the seed's validation data.

    Examples:
        >>> nearer = np.abs(target.validation.x - target.x.mean(0)).sum(1)
    """

    x: NDArray[np.float64]  # [row, feature]
    y: NDArray[Any] | None  # [row], for selectors that are given labels
    validation: Environment  # of all environments together
    task: Task
    classes: int
    weights: NDArray[np.float64] | None = None  # [row], where rows have some


@dataclass(frozen=True)
class Selector:
    """How a configuration is chosen. A selector defines `combine`, and others of these methods where it must.

    One that is to see test rows before the choice declares `sees_unlabelled`, or has `labels`, and defines `estimator`.
    Every row that it chooses is labelled so, and ranked only with others that saw as much.

    It may be told a metric: `--selector worst:auc`. What it is given are risks, of which smaller are better: the
    metric itself, or 1 minus a metric of which higher is better.

    Examples:
        >>> @dataclass(frozen=True)
        ... class Median(Selector):
        ...     def combine(self, risks):
        ...         return np.median(risks)
    """

    metric: str = "error"  # of an environment
    takes_metric: ClassVar[bool] = True  # whether a user may name another
    sees_test: ClassVar[bool] = False  # then it is labelled an oracle wherever it is shown
    needs_stability: ClassVar[bool] = False  # then `stability` is a column of the scores, one value a model
    tasks: ClassVar[tuple[Task, ...]] = TASKS
    labels: int = 0  # labelled rows of every test environment that it is given; they are in no test score
    sees_unlabelled: ClassVar[bool] = False  # whether it is given x of every test environment, without y
    leaves_out: ClassVar[bool] = False
    """Whether every configuration is trained without each training environment in turn, too. The scores are then of
    these models, each on the training rows of the environment that it was trained without."""

    def combine(self, risks: NDArray[np.float64]) -> float:
        """The score of a model with these risks in the environments."""
        raise NotImplementedError(f"{type(self).__name__} defines neither combine nor by_seed")

    def estimator(self, target: Target) -> Callable[[Predictor], float]:
        """What estimates the error of a model of this seed in a test environment. `combine` gets the estimates."""
        raise NotImplementedError(f"{type(self).__name__} sees test rows and does not define estimator")

    def by_seed(self, scores: pd.DataFrame) -> pd.Series[float]:
        """The score of every configuration and seed. `scores` has a row per configuration, seed and environment, and
        the column `risk`."""
        by_model: Any = scores.groupby(["configuration", "seed"])["risk"]
        found: pd.Series[float] = by_model.agg(lambda risks: self.combine(risks.to_numpy(float)))
        return found

    def choose(self, scores: pd.DataFrame) -> int:
        """A configuration, of the scores of those that finished on every seed: [configuration, seed]. The smallest
        mean over seeds; ties go to the smaller number, and so to the defaults."""
        means = scores.mean(axis=1)
        return int(min(means.index, key=lambda configuration: (means[configuration], configuration)))


def sees_target(selector: Selector) -> bool:
    """Whether it is given rows of test environments before the choice, but not all of them with their labels."""
    return selector.sees_unlabelled or selector.labels > 0


def part_of(selector: Selector) -> str:
    """The result rows that it goes by."""
    if selector.sees_test:
        return "test"
    return ESTIMATED if sees_target(selector) else LEFT_OUT if selector.leaves_out else "validation"


def told_to(selector: Selector) -> str:
    """What it goes by besides validation scores; empty for most. Not a method: every board says it, whoever wrote the
    selector."""
    parts = ["environments left out"] if selector.leaves_out else []
    parts += ["sees unlabelled test rows"] if selector.sees_unlabelled else []
    parts += [f"sees {selector.labels} labelled rows per test environment"] if selector.labels else []
    return ", ".join(parts)
