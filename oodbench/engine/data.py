"""Rows: an environment as a dataset makes it, and the training rows of a seed as a method sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.arrays import put_together
from oodbench.errors import TrainingFailed

Task = Literal["regression", "classification"]


TASKS = get_args(Task)


@dataclass(frozen=True, eq=False)
class Environment:
    """Rows from one distribution. The arrays are read-only from here on.

    Examples:
        >>> Environment("NY", x=np.zeros((100, 3)), y=np.zeros(100))
    """

    name: str
    x: NDArray[np.float64]  # [row, feature]
    y: NDArray[Any]  # [row], float64 or a class number from 0
    weights: NDArray[np.float64] | None = None  # [row], above 0: how much each row counts; without, all count the same

    def __post_init__(self) -> None:
        x = np.ascontiguousarray(self.x, dtype=np.float64)
        y = np.asarray(self.y)
        if x.ndim != 2 or y.shape != x.shape[:1]:
            raise ValueError(
                f"environment {self.name!r} needs x [row, feature] and y [row], got {x.shape} and {y.shape}"
            )
        if len(y) == 0:
            raise ValueError(f"environment {self.name!r} has no rows")
        y = np.ascontiguousarray(y, dtype=np.int64 if y.dtype.kind in "iub" else np.float64)
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise ValueError(f"environment {self.name!r} has values that are not finite")
        arrays = {"x": x, "y": y}
        if self.weights is not None:
            arrays["weights"] = weights = np.ascontiguousarray(self.weights, dtype=np.float64)
            if weights.shape != y.shape or not (np.isfinite(weights).all() and weights.min() > 0):
                raise ValueError(
                    f"environment {self.name!r} needs weights [row] that are finite and above 0: leave other rows out"
                )
        for name, array in arrays.items():
            read_only = array.view()
            read_only.flags.writeable = False
            object.__setattr__(self, name, read_only)

    def __len__(self) -> int:
        return len(self.y)

    def draw(self, most: int) -> Environment:
        """At most so many of its rows, always the same."""
        if len(self) <= most:
            return self
        drawn = np.sort(np.random.default_rng(0).choice(len(self), most, replace=False))
        return self.take(drawn)

    def take(self, rows: NDArray[Any]) -> Environment:
        """Some of its rows: their places, or which they are."""
        weights = None if self.weights is None else self.weights[rows]
        return Environment(self.name, self.x[rows], self.y[rows], weights)

    @classmethod
    def pooled(cls, name: str, environments: Sequence[Environment]) -> Environment:
        """The rows of several together."""
        return cls(
            name,
            put_together([environment.x for environment in environments]),
            put_together([environment.y for environment in environments]),
            pooled_weights(environments),
        )

    def divide(self, parts: Sequence[Environment]) -> tuple[Environment, ...]:
        """The parts of which it was pooled, on its own rows instead of theirs."""
        ends = np.cumsum([len(part) for part in parts])
        return tuple(
            Environment(
                part.name,
                self.x[end - len(part) : end],
                self.y[end - len(part) : end].astype(part.y.dtype, copy=False),
                None if self.weights is None else self.weights[end - len(part) : end],
            )
            for part, end in zip(parts, ends, strict=True)
        )


def pooled_weights(environments: Sequence[Environment]) -> NDArray[np.float64] | None:
    """Of the rows of several environments: all of these have weights, or none."""
    weights = [environment.weights for environment in environments if environment.weights is not None]
    if weights and len(weights) < len(environments):
        raise ValueError("some environments have weights of rows and others have none")
    return put_together(weights) if weights else None


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The training rows of one seed, as a method sees them: read-only, and its own unless it `shares_rows`.

    Examples:
        >>> mean = train.x[train.environment == 0].mean(0)
    """

    x: NDArray[np.float64]  # [row, feature]; in single precision for methods that share rows
    y: NDArray[Any]  # [row]
    task: Task
    classes: int
    environment: NDArray[np.int64] | None = None  # [row], only for methods that need environments
    columns: tuple[str, ...] | None = None
    weights: NDArray[np.float64] | None = None  # [row], 0 or more: the dataset's, or a method's own for a further stage
    invariant: tuple[int, ...] | None = None  # places of the invariant columns, only for methods that need them
    categories: tuple[range, ...] = ()  # places of the columns of each categorical variable, in their order

    def __post_init__(self) -> None:
        if self.weights is None:
            return
        if self.weights.shape != self.y.shape:
            raise TrainingFailed(f"weights of training rows need shape {self.y.shape}, not {self.weights.shape}.")
        if not (np.isfinite(self.weights).all() and self.weights.min() >= 0 and self.weights.max() > 0):
            raise TrainingFailed("weights of training rows must be finite, 0 or more, and not all 0.")

    @classmethod
    def pooled(
        cls,
        environments: Sequence[Environment],
        task: Task,
        classes: int,
        labelled: bool,
        columns: tuple[str, ...] | None,
    ) -> TrainingRows:
        sizes = [len(environment) for environment in environments]
        return cls.of(Environment.pooled("training", environments), sizes if labelled else None, task, classes, columns)

    @classmethod
    def of(
        cls,
        together: Environment,
        sizes: Sequence[int] | None,
        task: Task,
        classes: int,
        columns: tuple[str, ...] | None,
    ) -> TrainingRows:
        """The rows of environments that were pooled, without a copy; with their sizes, each row has a label."""
        labels = None
        if sizes is not None:
            labels = put_together([np.full(size, number) for number, size in enumerate(sizes)])
            labels.flags.writeable = False
        return cls(together.x, together.y, task, classes, labels, columns, together.weights)

    def weighted(self, factors: NDArray[np.float64]) -> TrainingRows:
        """The same rows, each counting so many times as much: factors [row] on the weights that they have."""
        return replace(self, weights=factors if self.weights is None else self.weights * factors)

    def copy(self) -> TrainingRows:
        """The same rows in memory of their own, read-only: whatever a method does to them, others keep theirs."""
        copied = replace(
            self,
            x=self.x.copy(),
            y=self.y.copy(),
            environment=None if self.environment is None else self.environment.copy(),
            weights=None if self.weights is None else self.weights.copy(),
        )
        for array in (copied.x, copied.y, copied.environment, copied.weights):
            if array is not None:
                array.flags.writeable = False
        return copied

    def __len__(self) -> int:
        return len(self.y)
