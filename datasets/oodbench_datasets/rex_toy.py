"""The discrete example of risk extrapolation (Krueger et al. 2021): three values, one of which changes its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oodbench import Dataset, Environment, Linear, setting

POSITIVE = ((0.5, 0.75, 0.1), (0.5, 0.75, 0.1), (0.5, 0.75, 0.2))  # P(y=1 | x) in the training environments
SHARES = ((0.4, 0.1, 0.5), (0.1, 0.4, 0.5), (0.1, 0.4, 0.5))  # P(x) there
TEST_SHARES = (0.25, 0.25, 0.5)
NOISE = 0.01  # standard deviation


@dataclass(frozen=True)
class RexToy(Dataset):
    """Classification by one of three values, as columns (Krueger et al. 2021): P(y=1) is 0.5 at x=0 and 0.75 at x=1
    everywhere; at x=2 it is 0.1 or 0.2 in training and `test_positive` in test. P(x) varies too.

    A linear model without a constant learns P(y=1 | x) of each value; a little noise tells rows apart. The authors
    expect (0.5, 0.75, mean) of ERM, (0.5, 0.75, 0.5) of IRM and (0.5, 0.5, 0.5) of V-REx.
    """

    task = "classification"
    model = Linear(intercept=False)
    tiny = {"rows": 200}

    rows: int = setting(5000, "rows of each environment")
    test_positive: float = setting(0.9, "P(y=1) at x=2 in the test environment")

    def __post_init__(self) -> None:
        if not 0 <= self.test_positive <= 1:
            raise ValueError("test_positive must be 0 to 1.")
        if self.rows < 50:
            raise ValueError("rows must be at least 50.")

    @property
    def columns(self) -> tuple[str, ...]:
        return ("x=0", "x=1", "x=2")

    @property
    def invariant(self) -> tuple[int, ...]:
        """At x=0 and x=1 the share of positive rows is the same everywhere."""
        return (0, 1)

    def train(self, seed: int) -> Sequence[Environment]:
        return self._draw(self.rng(seed, "train"))

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._draw(self.rng(seed, "validation"))

    def test(self, seed: int) -> Sequence[Environment]:
        positive = (*POSITIVE[0][:2], self.test_positive)
        return [self._draw_environment(self.rng(seed, "test"), "test", TEST_SHARES, positive)]

    def _draw(self, rng: np.random.Generator) -> list[Environment]:
        names = (f"E{number}" for number in range(len(SHARES)))
        return [self._draw_environment(rng, *one) for one in zip(names, SHARES, POSITIVE, strict=True)]

    def _draw_environment(
        self, rng: np.random.Generator, name: str, shares: tuple[float, ...], positive: tuple[float, ...]
    ) -> Environment:
        value = rng.choice(3, self.rows, p=shares)
        y = (rng.random(self.rows) < np.array(positive)[value]).astype(np.int64)
        return Environment(name, np.eye(3)[value] + NOISE * rng.normal(size=(self.rows, 3)), y)
