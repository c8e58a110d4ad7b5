"""Two bits, one of which agrees with Y equally often everywhere (Kamath et al. 2021): Colored MNIST without images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oodbench import Dataset, Environment, Linear, setting

NOISE = 0.01  # standard deviation


@dataclass(frozen=True)
class TwoBit(Dataset):
    """Classification by two bits: `shape` is Y flipped equally often everywhere, `color` is more often right in
    training and wrong in test (Kamath et al. 2021; Colored MNIST without images). A little noise tells rows apart."""

    task = "classification"
    model = Linear()
    tiny = {"rows": 100}

    shape_flips: float = setting(0.25, "share of rows whose shape is not Y")
    color_flips: tuple[float, ...] = setting((0.1, 0.2), "share of rows whose color is not Y, by training environment")
    test_flips: tuple[float, ...] = setting((0.9,), "share of rows whose color is not Y, by test environment")
    rows: int = setting(5000, "rows of each environment")

    def __post_init__(self) -> None:
        flips = (self.shape_flips, *self.color_flips, *self.test_flips)
        if not (self.color_flips and self.test_flips and all(0 <= flip <= 1 for flip in flips)):
            raise ValueError("shape_flips, color_flips and test_flips are shares, from 0 to 1.")
        if any(len(set(flips)) < len(flips) for flips in (self.color_flips, self.test_flips)):
            raise ValueError("color_flips or test_flips names an environment twice.")
        if self.rows < 20:
            raise ValueError("rows must be at least 20.")

    @property
    def columns(self) -> tuple[str, ...]:
        return ("shape", "color")

    @property
    def invariant(self) -> tuple[int, ...]:
        """The shape."""
        return (0,)

    def train(self, seed: int) -> Sequence[Environment]:
        return self._draw(self.rng(seed, "train"), self.color_flips)

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._draw(self.rng(seed, "validation"), self.color_flips)

    def test(self, seed: int) -> Sequence[Environment]:
        return self._draw(self.rng(seed, "test"), self.test_flips)

    def _draw(self, rng: np.random.Generator, flips: tuple[float, ...]) -> list[Environment]:
        drawn = []
        for flip in flips:
            y = rng.integers(0, 2, self.rows)
            sign = 2.0 * y - 1
            shape, color = (np.where(rng.random(self.rows) < share, -sign, sign) for share in (self.shape_flips, flip))
            x = np.column_stack([shape, color]) + NOISE * rng.normal(size=(self.rows, 2))
            drawn.append(Environment(f"flips={flip:g}", x, y))
        return drawn
