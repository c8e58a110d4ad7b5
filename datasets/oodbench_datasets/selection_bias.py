"""Regression with selection bias (Liu et al. 2024, Table 1; appendix "Regression")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oodbench import Dataset, Environment, Linear, setting

Array = NDArray[np.float64]


class Reading(NamedTuple):
    """What the paper leaves open about how Z, V, Y and the noise are drawn."""

    z_std: float
    v_std: float
    beta: tuple[float, ...]
    noise_std: float


READINGS = {
    "reproduces": Reading(1.0, 2.0, (0.5, -1.0, 1.5, -0.5, 1.0), 1.0),
    "appendix": Reading(2**0.5, 2**0.5, (0.5, -1.0, 1.0, -0.5, 1.0), 1.0),
    "main_text": Reading(1.0, 2.0, (0.5, -1.0, 1.5, -0.5, 1.0), 0.1),
}


@dataclass(frozen=True)
class SelectionBias(Dataset):
    """Regression where selection ties Y to a spurious feature, positively in training, negatively in test.

    S causes Y; V does not. A row is kept with probability |r|^(-5 |Y - sign(r) V5|), so V5 follows Y for r > 1
    and opposes it for r < -1. P(Y|S) is the same everywhere.
    """

    task = "regression"
    model = Linear(intercept=False)
    tiny = {"majority": 200, "minority": 40, "test_rows": 50, "test_r": (-1.9, -2.9)}

    r1: float = setting(1.9, "selection of the majority group")
    r2: float = setting(-1.1, "selection of the minority group")
    more_r: tuple[float, ...] = setting((), "selection of further training groups, each as large as the minority")
    test_r: tuple[float, ...] = setting((-1.9, -2.1, -2.3, -2.5, -2.7, -2.9), "selection of each test environment")
    majority: int = setting(2000, "training rows of the majority group")
    minority: int = setting(200, "training rows of the minority group")
    test_rows: int = setting(1000, "rows of each test environment")
    reading: Literal["reproduces", "appendix", "main_text"] = setting(
        "reproduces",
        "reproduces: the one that gives the published errors; appendix, main_text: the paper's text, literally",
    )

    def __post_init__(self) -> None:
        if min(abs(r) for r in (self.r1, self.r2, *self.more_r, *self.test_r)) <= 1:
            raise ValueError("r1, r2 and every more_r and test_r need an absolute value above 1.")
        if len({self.r1, self.r2, *self.more_r}) < 2 + len(self.more_r) and self.more_r:
            raise ValueError("more_r names a training group twice.")
        if len(set(self.test_r)) < len(self.test_r):
            raise ValueError("test_r names an environment twice.")
        if min(self.majority, self.minority, self.test_rows) < 2:
            raise ValueError("majority, minority and test_rows need at least 2 rows.")

    @property
    def columns(self) -> tuple[str, ...]:
        return ("S1", "S2", "S3", "S4", "S5", "V1", "V2", "V3", "V4", "V5")

    @property
    def facts(self) -> dict[str, float | int]:
        """The paper tells methods alpha0 = 0.1 and two clusters; the minority's true share is 200 / 2200."""
        return {"alpha0": 0.1, "clusters": 2 + len(self.more_r)}

    @property
    def invariant(self) -> tuple[int, ...]:
        """S causes Y."""
        return tuple(range(5))

    def train(self, seed: int) -> Sequence[Environment]:
        return self._groups(self.rng(seed, "train"))

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._groups(self.rng(seed, "validation"))

    def test(self, seed: int) -> Sequence[Environment]:
        rng = self.rng(seed, "test")
        return [self._select(rng, r, self.test_rows) for r in self.test_r]

    def _groups(self, rng: np.random.Generator) -> list[Environment]:
        majority = self._select(rng, self.r1, self.majority)
        return [majority, *(self._select(rng, r, self.minority) for r in (self.r2, *self.more_r))]

    def _select(self, rng: np.random.Generator, r: float, rows: int) -> Environment:
        """`rows` selected rows, by rejection."""
        kept: list[tuple[Array, Array]] = []
        missing = rows
        while missing > 0:
            x, y = self.draw(rng, 20 * missing + 1000)
            keep = rng.random(len(y)) < selection_probability(r, y, x[:, -1])
            kept.append((x[keep], y[keep]))
            missing -= int(keep.sum())
        x, y = (np.concatenate(parts)[:rows] for parts in zip(*kept, strict=True))
        return Environment(f"r={r:g}", x, y)

    def draw(self, rng: np.random.Generator, rows: int) -> tuple[Array, Array]:
        """Rows before selection."""
        reading = READINGS[self.reading]
        z = rng.normal(0, reading.z_std, (rows, 6))
        v = rng.normal(0, reading.v_std, (rows, 5))
        s = 0.8 * z[:, :5] + 0.2 * z[:, 1:]
        y = rng.normal(0, reading.noise_std, rows) + s[:, 0] * s[:, 1] * s[:, 2]
        for coefficient, column in zip(reading.beta, s.T, strict=True):  # no BLAS: the same bits on any machine
            y = y + coefficient * column
        return np.hstack([s, v]), y


def selection_probability(r: float, y: Array, v: Array) -> Array:
    """|r|^(-5 |y - sign(r) v|)"""
    probability: Array = np.power(abs(r), -5 * np.abs(y - np.sign(r) * v))
    return probability
