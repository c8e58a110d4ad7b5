"""What trained models say of many small environments, in one pass: one by one, most of the time goes into asking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.fitted import FittedModel

if TYPE_CHECKING:
    from oodbench.engine.data import Environment
    from oodbench.engine.predictor import Predictor

MANY = 200  # environments
SMALL = 256  # rows of one, on average
MOST_ROWS = 1 << 20  # whose outputs are kept


@dataclass(frozen=True, eq=False)
class Said:
    """The answers of a trained model for the rows of one environment, whatever rows it is asked about."""

    model: FittedModel
    answers: NDArray[np.float32]  # [output, row]

    def predict(self, x: NDArray[np.float64]) -> NDArray[Any]:
        return self.model.predict_from(self.answers)

    def predict_proba(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.model.probabilities_from(self.answers)

    def losses(self, x: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.float64]:
        return self.model.losses_from(self.answers, y)


def hear(predictor: Predictor, environment: Environment) -> Predictor:
    """Who answers for the environment where much is asked about it: a trained model computes its outputs once."""
    if isinstance(predictor, FittedModel) and len(environment) <= MOST_ROWS:
        return Said(predictor, predictor.forward(environment.x))
    return predictor


def answer_together(
    predictors: Sequence[Predictor], environments: Sequence[Environment]
) -> list[tuple[Environment, list[Predictor]]]:
    """Each environment with who answers for it: the predictors, or what trained ones said of it already."""
    sizes = [len(environment) for environment in environments]
    if len(sizes) <= MANY or sum(sizes) > SMALL * len(sizes):
        return [(environment, list(predictors)) for environment in environments]
    x = np.concatenate([environment.x for environment in environments])
    ends = np.cumsum(sizes)[:-1]
    answers: list[list[Predictor]] = []  # [predictor][environment]
    for predictor in predictors:
        if isinstance(predictor, FittedModel):
            answers.append([Said(predictor, part) for part in np.split(predictor.forward(x), ends, axis=1)])
        else:
            answers.append([predictor] * len(sizes))
    return [(environment, list(said)) for environment, *said in zip(environments, *answers, strict=True)]
