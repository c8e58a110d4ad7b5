from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oodbench import Dataset, Environment, setting


@dataclass(frozen=True)
class Tilted(Dataset):
    """A spurious slope that differs between groups and turns around in test."""

    task = "regression"
    tiny = {"rows": 60}

    rows: int = setting(500, "rows of each environment")
    tilt: float = setting(-2.0, "the spurious slope in test")

    def train(self, seed: int) -> Sequence[Environment]:
        return self._groups(self.rng(seed, "train"))

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._groups(self.rng(seed, "validation"))

    def test(self, seed: int) -> Sequence[Environment]:
        rng = self.rng(seed, "test")
        return [self._draw(rng, self.tilt), self._draw(rng, self.tilt / 2)]

    def _groups(self, rng: np.random.Generator) -> list[Environment]:
        return [self._draw(rng, 2.0), self._draw(rng, 0.5)]

    def _draw(self, rng: np.random.Generator, slope: float) -> Environment:
        cause = rng.normal(size=self.rows)
        y = cause + rng.normal(size=self.rows)
        spurious = slope * y + rng.normal(size=self.rows)
        return Environment(f"slope={slope:g}", np.column_stack([cause, spurious]), y)
