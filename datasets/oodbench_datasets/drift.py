"""Concepts that drift: environments in the order of time, the first ones for training, the later ones for test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from oodbench import Dataset, Environment, Mlp, setting
from oodbench.engine.data import Task
from oodbench_datasets.linear_maps import Array, product

THRESHOLDS = (8.0, 9.0, 7.0, 9.5)
SWAPPED = (3, 4, 1, 0, 2)  # the places that the last concept's x1, ..., x5 have in the first one's
COLUMNS = {"sea": 3, "hyperplane": 10, "friedman": 10}


@dataclass(frozen=True)
class Drift(Dataset):
    """Concepts that drift: environments t=0, 1, ... in the order of time, the first for training, the later for test.

    sea (Street & Kim 2001): three columns in [0, 10], class 1 where x1 + x2 <= 8, 9, 7, 9.5, from step to step.
    hyperplane (Hulten et al. 2001): ten columns in [0, 1], class 1 where sum w x > sum w / 2, and two of the weights
    move by `change` a step. friedman (Friedman 1991, with drift by Ikonomovska et al. 2011): a regression,
    10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 + N(0, 1), where other columns take over these roles step by step.
    """

    model = Mlp(width=(32,))
    tiny = {"rows": 60}

    kind: Literal["sea", "hyperplane", "friedman"] = setting("sea", "which concepts")
    steps: int = setting(4, "environments in all")
    known: int = setting(2, "how many of them, the first, are training environments")
    rows: int = setting(1000, "rows of each environment")
    flips: float = setting(0.1, "share of wrong labels, of sea and hyperplane")
    change: float = setting(0.2, "how far the drifting weights of hyperplane move in a step")

    def __post_init__(self) -> None:
        if not 1 <= self.known < self.steps:
            raise ValueError("known must be at least 1 and below steps.")
        if not 0 <= self.flips < 0.5:
            raise ValueError("flips must be 0 or more and below 0.5.")
        if self.rows < 20:
            raise ValueError("rows must be at least 20.")

    @property
    def task(self) -> Task:
        return "regression" if self.kind == "friedman" else "classification"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"x{i + 1}" for i in range(COLUMNS[self.kind]))

    def train(self, seed: int) -> Sequence[Environment]:
        return self._draw(seed, "train", range(self.known))

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._draw(seed, "validation", range(self.known))

    def test(self, seed: int) -> Sequence[Environment]:
        return self._draw(seed, "test", range(self.known, self.steps))

    def _draw(self, seed: int, part: str, times: range) -> list[Environment]:
        rng = self.rng(seed, part)
        drawn = []
        for time in times:
            x = rng.random((self.rows, COLUMNS[self.kind])) * (10 if self.kind == "sea" else 1)
            if self.kind == "friedman":
                y: NDArray[np.float64] | NDArray[np.int64] = self.friedman(x, time) + rng.normal(size=self.rows)
            else:
                right = self.sea(x, time) if self.kind == "sea" else self.hyperplane(x, seed, time)
                y = (right ^ (rng.random(self.rows) < self.flips)).astype(np.int64)
            drawn.append(Environment(f"t={time}", x, y))
        return drawn

    def sea(self, x: Array, time: int) -> NDArray[np.bool_]:
        return x[:, 0] + x[:, 1] <= THRESHOLDS[time % len(THRESHOLDS)]

    def hyperplane(self, x: Array, seed: int, time: int) -> NDArray[np.bool_]:
        weights = self.rng(seed, "weights").random((x.shape[1],))
        weights[:2] += np.array([1.0, -1.0]) * self.change * time
        return product(x - 0.5, weights[:, None])[:, 0] > 0

    def friedman(self, x: Array, time: int) -> Array:
        share = time / (self.steps - 1)
        return (1 - share) * _friedman(x) + share * _friedman(x[:, SWAPPED])


def _friedman(x: Array) -> Array:
    value: Array = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return value
