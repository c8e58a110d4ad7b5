"""What a selector is: how a study's configuration is chosen from scores in the validation environments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


LEFT_OUT = "left_out"
"""The part of rows of models that were trained without an environment, on the training rows of that environment."""


@dataclass(frozen=True)
class Selector:
    """How a configuration is chosen. A selector defines `combine`, and others of these methods where it must.

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
    leaves_out: ClassVar[bool] = False
    """Whether every configuration is trained without each training environment in turn, too. The scores are then of
    these models, each on the training rows of the environment that it was trained without."""

    @property
    def part(self) -> str:
        """The result rows that it goes by."""
        return "test" if self.sees_test else LEFT_OUT if self.leaves_out else "validation"

    @property
    def told(self) -> str:
        """What it goes by besides validation scores. Boards say so, and rank nothing else with it."""
        return "environments left out" if self.leaves_out else ""

    def combine(self, risks: NDArray[np.float64]) -> float:
        """The score of a model with these risks in the environments."""
        raise NotImplementedError(f"{type(self).__name__} defines neither combine nor by_seed")

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
