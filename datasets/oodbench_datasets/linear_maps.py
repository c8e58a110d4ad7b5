"""Products of rows with small matrices, and random rotations: without BLAS, so the same bits on any machine."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def product(rows: Array, matrix: Array) -> Array:
    """rows [row, k] times matrix [k, column]."""
    total: Array = rows[:, :1] * matrix[0]
    for place in range(1, len(matrix)):
        total = total + rows[:, place : place + 1] * matrix[place]
    return total


def random_rotation(rng: np.random.Generator, size: int) -> Array:
    """An orthogonal matrix: the rows of a normal one, each without what it shares with those before (Gram-Schmidt)."""
    rows: list[list[float]] = []
    for drawn in rng.normal(size=(size, size)).tolist():
        for _ in range(2):  # the second time removes what rounding left of the others
            for other in rows:
                shared = math.fsum(a * b for a, b in zip(drawn, other, strict=True))
                drawn = [a - shared * b for a, b in zip(drawn, other, strict=True)]
        length = math.sqrt(math.fsum(a * a for a in drawn))
        rows.append([a / length for a in drawn])
    return np.array(rows)
