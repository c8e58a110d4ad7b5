"""What a training comes to: anything that predicts, and what else it may be able to do."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Predictor(Protocol):
    """Anything with `predict`: values for regression, class numbers for classification. [row] -> [row]

    A predictor that also has `losses(x, y)` reports its own loss; for the others the loss is the error. A classifier
    may have `outputs(x)` too: a logit, score or probability per class, [row, class]; and `predict_proba(x)`, its
    probabilities [row, class]. Without it, probabilities are the outputs, or where these are none, their softmax.

    Examples:
        >>> class Mean:
        ...     def predict(self, x):
        ...         return np.zeros(len(x))
    """

    def predict(self, x: NDArray[np.float64]) -> NDArray[Any]:
        """The prediction for each row."""
        ...


@runtime_checkable
class GivesOutputs(Protocol):
    """What a classifier may have besides `predict`: a logit, score or probability per class. [row] -> [row, class]"""

    def outputs(self, x: NDArray[np.float64]) -> NDArray[Any]: ...


@runtime_checkable
class Storable(Protocol):
    """A predictor that the record can keep: as plain arrays, since nothing else is safe to load."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Empty where this one cannot be kept."""
        ...

    def about(self) -> dict[str, str]:
        """What is needed to use the arrays."""
        ...
