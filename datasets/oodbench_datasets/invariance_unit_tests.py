"""Linear unit tests for invariance (Aubin et al. 2021): three small problems that an invariant predictor solves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oodbench import Dataset, Environment, Linear, setting
from oodbench.engine.data import Task
from oodbench_datasets.linear_maps import Array, product, random_rotation

NOISE = (0.1, 1.5, 2.0)  # example 1: standard deviation of x and of the noise of y in the first environments
SHARES = ((0.95, 0.3), (0.97, 0.5), (0.99, 0.7))  # example 2: of usual backgrounds, of cows
MOST = 10

Drawn = tuple[Array, Array, NDArray[Any]]
"""Invariant and spurious columns [row, column], and y [row]."""


@dataclass(frozen=True)
class InvarianceUnitTests(Dataset):
    """Three linear problems with invariant and spurious columns (Aubin et al. 2021).

    1: regression, X causes Y and Y causes Z, with another noise in every environment. 2: classes, cows and camels
    (columns of small scale) on grass or sand (of large scale). 3: classes with a small margin that is the same
    everywhere and a large one that every environment has elsewhere. In the test environments, the training environments
    again, the spurious columns are permuted over the rows.
    """

    model = Linear()
    tiny = {"rows": 60}

    example: Literal[1, 2, 3] = setting(1, "which problem")
    scrambled: bool = setting(False, "whether the columns are rotated, so that none of them is invariant or spurious")
    environments: int = setting(3, f"training environments, 2 to {MOST}")
    invariant_columns: int = setting(5, "how many columns are invariant")
    spurious_columns: int = setting(5, "how many columns are spurious")
    rows: int = setting(10_000, "rows of each environment")
    test_rows: int = setting(0, "rows of each test environment; 0: as many as of the others")

    def __post_init__(self) -> None:
        if not 2 <= self.environments <= MOST:
            raise ValueError(f"environments must be 2 to {MOST}.")
        if min(self.invariant_columns, self.spurious_columns) < 1:
            raise ValueError("invariant_columns and spurious_columns must be at least 1.")
        if self.rows < 20 or 0 < self.test_rows < 20:
            raise ValueError("rows and test_rows must be at least 20.")
        if self.test_rows < 0:
            raise ValueError("test_rows must be 0 or more.")

    @property
    def task(self) -> Task:
        return "regression" if self.example == 1 else "classification"

    @property
    def columns(self) -> tuple[str, ...]:
        if self.scrambled:
            return tuple(f"mixed{i + 1}" for i in range(self.invariant_columns + self.spurious_columns))
        invariant = (f"invariant{i + 1}" for i in range(self.invariant_columns))
        return (*invariant, *(f"spurious{i + 1}" for i in range(self.spurious_columns)))

    @property
    def invariant(self) -> tuple[int, ...] | None:
        """Of scrambled columns none is: combinations of them are."""
        return None if self.scrambled else tuple(range(self.invariant_columns))

    def coefficients(self, seed: int) -> Array | None:
        """Of the sum of X Wxy, example 1; those of Z are zero."""
        if self.example != 1:
            return None
        causal = np.array([sum(row) for row in self.causes(seed).tolist()])
        return self._mix(seed, np.concatenate([causal, np.zeros(self.spurious_columns)])[None]).ravel()

    def train(self, seed: int) -> Sequence[Environment]:
        return self._draw(seed, "train", self.rows)

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._draw(seed, "validation", self.rows)

    def test(self, seed: int) -> Sequence[Environment]:
        return self._draw(seed, "test", self.test_rows or self.rows, permuted=True)

    def _draw(self, seed: int, part: str, rows: int, permuted: bool = False) -> list[Environment]:
        draw = {1: self._cause_and_effect, 2: self._cows_and_camels, 3: self._small_margin}[self.example]
        rng = self.rng(seed, part)
        drawn = []
        for number in range(self.environments):
            invariant, spurious, y = draw(rng, seed, number, rows)
            if permuted:
                spurious = spurious[rng.permutation(rows)]
            x = self._mix(seed, np.hstack([invariant, spurious]))
            drawn.append(Environment(f"E{number}", x, y))
        return drawn

    def _mix(self, seed: int, rows: Array) -> Array:
        if not self.scrambled:
            return rows
        return product(rows, random_rotation(self.rng(seed, "rotation"), rows.shape[1]))

    # ---- the three problems

    def causes(self, seed: int) -> Array:
        """Wxy of example 1."""
        size = self.invariant_columns
        return self.rng(seed, "causes").normal(size=(size, size)) / size

    def effects(self, seed: int) -> Array:
        """Wyz of example 1."""
        shape = (self.invariant_columns, self.spurious_columns)
        return self.rng(seed, "effects").normal(size=shape) / self.spurious_columns

    def noise(self, seed: int) -> list[float]:
        """Standard deviations of example 1: those of the first three environments are known."""
        more = 10 ** self.rng(seed, "noise").uniform(-2, 1, MOST)
        return [*NOISE, *more.tolist()][: self.environments]

    def shares(self, seed: int) -> list[tuple[float, float]]:
        """Of usual backgrounds and of cows, example 2: those of the first three environments are known."""
        rng = self.rng(seed, "shares")
        more = [(float(rng.uniform(0.9, 1)), float(rng.uniform(0.3, 0.7))) for _ in range(MOST)]
        return [*SHARES, *more][: self.environments]

    def centres(self, seed: int) -> Array:
        """Of class 0 in the spurious columns, example 3: [environment, column]."""
        return self.rng(seed, "centres").normal(size=(MOST, self.spurious_columns))[: self.environments]

    def _cause_and_effect(self, rng: np.random.Generator, seed: int, number: int, rows: int) -> Drawn:
        std = self.noise(seed)[number]
        x = rng.normal(size=(rows, self.invariant_columns)) * std
        y = product(x, self.causes(seed)) + rng.normal(size=x.shape) * std
        z = product(y, self.effects(seed)) + rng.normal(size=(rows, self.spurious_columns))
        return x, z, product(y, np.ones((y.shape[1], 1)))[:, 0]

    def _cows_and_camels(self, rng: np.random.Generator, seed: int, number: int, rows: int) -> Drawn:
        usual, cows = self.shares(seed)[number]
        animal = np.where(rng.random(rows) < cows, 1.0, -1.0)
        background = np.where(rng.random(rows) < usual, animal, -animal)
        invariant = self._around(rng, animal, self.invariant_columns) * 0.01
        spurious = self._around(rng, background, self.spurious_columns)
        label = product(invariant, np.ones((self.invariant_columns, 1)))[:, 0] > 0
        return invariant, spurious, label.astype(np.int64)

    def _around(self, rng: np.random.Generator, centre: Array, columns: int) -> Array:
        drawn: Array = rng.normal(size=(len(centre), columns)) / np.sqrt(10) + centre[:, None]
        return drawn

    def _small_margin(self, rng: np.random.Generator, seed: int, number: int, rows: int) -> Drawn:
        label = np.arange(rows) % 2
        sign = 1.0 - 2 * label[:, None]
        invariant = 0.1 * rng.normal(size=(rows, self.invariant_columns)) + 0.1 * sign
        spurious = 0.1 * rng.normal(size=(rows, self.spurious_columns)) + self.centres(seed)[number] * sign
        return invariant, spurious, label
