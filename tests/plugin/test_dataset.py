from __future__ import annotations

import numpy as np
import pytest

from oodbench import Environment
from oodbench.plugin.dataset import fingerprint


def test_arrays_are_read_only() -> None:
    environment = Environment("a", np.zeros((3, 2)), np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        environment.x[0, 0] = 1


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (np.zeros(3), np.zeros(3), "needs x"),
        (np.zeros((3, 2)), np.zeros(2), "needs x"),
        (np.zeros((0, 2)), np.zeros(0), "no rows"),
        (np.full((3, 2), np.nan), np.zeros(3), "not finite"),
        (np.zeros((3, 2)), np.array([0, np.inf, 1]), "not finite"),
    ],
)
def test_rows_that_cannot_be(x: np.ndarray, y: np.ndarray, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Environment("a", x, y)


def test_the_fingerprint_sees_values_names_and_types() -> None:
    x, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])
    prints = {
        fingerprint([Environment("a", x, y)]),
        fingerprint([Environment("b", x, y)]),
        fingerprint([Environment("a", x + 1e-12, y)]),
        fingerprint([Environment("a", x, y.astype(float))]),
        fingerprint([Environment("a", x.T.copy().T, 1 - y)]),
    }
    assert len(prints) == 5
    assert fingerprint([Environment("a", np.asfortranarray(x), y)]) == fingerprint([Environment("a", x, y)])
