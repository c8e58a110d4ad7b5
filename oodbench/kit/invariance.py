"""Sets of columns whose least squares leaves residuals that are alike in all environments."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import InvalidSetting

if TYPE_CHECKING:
    from oodbench.engine.data import TrainingRows

MOST_COLUMNS = 12

Array = NDArray[np.float64]


def check_subsets(train: TrainingRows) -> None:
    """Raise InvalidSetting where there are too many columns to try every set of them."""
    columns = train.x.shape[1]
    if columns > MOST_COLUMNS:
        raise InvalidSetting(
            f"this method tries every set of columns, and {columns} columns have 2^{columns} sets.\n"
            f"Choose a dataset with at most {MOST_COLUMNS} columns."
        )


def invariant_columns(x: Array, y: Array, environment: NDArray[np.int64], level: float) -> list[int]:
    """The columns that all sets share whose residuals are not found to differ between environments."""
    table = np.column_stack([x - x.mean(0), np.ones(len(x)), y - y.mean()])
    parts = [table[environment == number] for number in np.unique(environment)]
    sizes = np.array([len(part) for part in parts])
    squares = np.stack([part.T @ part for part in parts])  # all that least squares and the tests need of the rows
    shared: set[int] | None = None
    for size in range(x.shape[1] + 1):
        for columns in itertools.combinations(range(x.shape[1]), size):
            if shared is not None and shared <= set(columns):
                continue  # whatever the test says, it does not change what is shared
            if invariance_p_value(squares, sizes, columns) > level:
                shared = set(columns) if shared is None else shared & set(columns)
    return sorted(shared or ())


def invariance_p_value(squares: Array, sizes: NDArray[np.int64], columns: tuple[int, ...]) -> float:
    """Of the hypothesis that residuals have one mean and variance: the smallest over environments, corrected.

    squares [environment, column, column] are sums over rows of products of columns, a constant and, last, y.
    """
    from scipy.stats import f as f_distribution
    from scipy.stats import t as t_distribution

    used = [*columns, squares.shape[1] - 2]
    everyone = squares.sum(0)
    fit = np.linalg.lstsq(everyone[np.ix_(used, used)], everyone[used, -1])[0]
    residual = np.zeros(squares.shape[1])
    residual[used], residual[-1] = -fit, 1.0
    sums, total = squares[:, -2] @ residual, np.einsum("i,eij,j->e", residual, squares, residual)
    others, others_total, others_sizes = sums.sum() - sums, total.sum() - total, sizes.sum() - sizes
    means, others_means = sums / sizes, others / others_sizes
    tiny = 1e-12 * everyone[-1, -1]
    free, others_free = np.maximum(sizes - 1, 1), np.maximum(others_sizes - 1, 1)
    variances = np.maximum(total - sizes * means**2, tiny) / free
    others_variances = np.maximum(others_total - others_sizes * others_means**2, tiny) / others_free

    errors, others_errors = variances / sizes, others_variances / others_sizes
    freedom = (errors + others_errors) ** 2 / (errors**2 / free + others_errors**2 / others_free)
    by_mean = 2 * t_distribution.sf(np.abs(means - others_means) / np.sqrt(errors + others_errors), freedom)
    ratio = variances / others_variances
    below, above = f_distribution.cdf(ratio, free, others_free), f_distribution.sf(ratio, free, others_free)
    by_variance = 2 * np.minimum(below, above)
    smallest = 2 * np.minimum(by_mean, by_variance).min()
    # with two environments, one against the other is a single comparison
    return float(min(1.0, smallest * (len(sizes) if len(sizes) > 2 else 1)))


def least_squares(x: Array, y: Array) -> Array:
    """Coefficients, the constant last."""
    return np.asarray(np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y)[0], np.float64)
