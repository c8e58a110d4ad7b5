"""Classification with spurious correlation (Liu et al. 2024, Table 2; appendix "Classification")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from oodbench import Dataset, Environment, Mlp, Recipe, setting

READINGS = {"reproduces": (3.0, 0.3), "appendix": (3.0**0.5, 0.3**0.5)}
"""Standard deviations of S and V: the paper's 3.0 and 0.3, or these taken as variances, as it is written."""


@dataclass(frozen=True)
class SpuriousCorrelation(Dataset):
    """Classification where a precise feature agrees with Y in training and opposes it in test.

    S ~ N(Y 1, sigma_s^2) is noisy and invariant; V ~ N(A 1, sigma_v^2) is precise, and A = Y holds for a share r
    of the rows, A = -Y for the others.
    """

    task = "classification"
    model = Mlp(width=(64,))
    recipe = Recipe(steps=500, loss="squared")
    tiny = {"group_rows": 100, "test_rows": 100, "d": 2}

    r1: float = setting(0.9, "share of rows with A = Y in the first training group")
    r2: float = setting(0.75, "share of rows with A = Y in the second training group")
    r3: float = setting(0.0, "share of rows with A = Y in the test environment")
    d: int = setting(5, "dimension of S and of V")
    group_rows: int = setting(1000, "rows of each training group")
    test_rows: int = setting(1000, "rows of the test environment")
    reading: Literal["reproduces", "appendix"] = setting(
        "reproduces",
        "reproduces: 3.0 and 0.3 are standard deviations; appendix: they are variances, as the paper writes",
    )

    def __post_init__(self) -> None:
        if not all(0 <= r <= 1 for r in (self.r1, self.r2, self.r3)):
            raise ValueError("r1, r2 and r3 are shares, from 0 to 1.")
        if min(self.d, self.group_rows, self.test_rows) < 1:
            raise ValueError("d, group_rows and test_rows must be at least 1.")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{kind}{i + 1}" for kind in "SV" for i in range(self.d))

    @property
    def facts(self) -> dict[str, float | int]:
        """The paper tells methods alpha0 = 0.15 and two clusters; the minority's true share is 0.17."""
        return {"alpha0": 0.15, "clusters": 2}

    @property
    def invariant(self) -> tuple[int, ...]:
        """S follows Y alone."""
        return tuple(range(self.d))

    def train(self, seed: int) -> Sequence[Environment]:
        return self._groups(self.rng(seed, "train"))

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._groups(self.rng(seed, "validation"))

    def test(self, seed: int) -> Sequence[Environment]:
        return [self._draw(self.rng(seed, "test"), f"r3={self.r3:g}", self.r3, self.test_rows)]

    def _groups(self, rng: np.random.Generator) -> list[Environment]:
        return [
            self._draw(rng, f"r1={self.r1:g}", self.r1, self.group_rows),
            self._draw(rng, f"r2={self.r2:g}", self.r2, self.group_rows),
        ]

    def _draw(self, rng: np.random.Generator, name: str, r: float, rows: int) -> Environment:
        sigma_s, sigma_v = READINGS[self.reading]
        y = rng.integers(0, 2, rows)
        sign = 2.0 * y - 1
        attribute = np.where(rng.random(rows) < r, sign, -sign)
        s = rng.normal(0, sigma_s, (rows, self.d)) + sign[:, None]
        v = rng.normal(0, sigma_v, (rows, self.d)) + attribute[:, None]
        return Environment(name, np.hstack([s, v]), y)
