"""The structural equations of Arjovsky et al. (2019, section 5.1): X causes Y, Y causes Z, and the noise varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from oodbench import Dataset, Environment, Linear, setting
from oodbench_datasets.linear_maps import Array, product, random_rotation


@dataclass(frozen=True)
class IrmSem(Dataset):
    """A regression where X causes Y, Y causes Z and the noise varies (Arjovsky et al. 2019).

    An environment has a noise scale e. H ~ e N; X ~ H + e N; Y ~ X + a N; Z ~ Y + b N, where the noise of Y (a) is e if
    `heteroskedastic`, else that of Z (b), and the other is 1. If `hidden`, H also causes Y and Z, by random matrices.
    The target is the sum of Y, so the coefficients of X are 1 and those of Z are 0: `causal_error` and
    `noncausal_error` on boards are mean squared errors of the two.
    """

    task = "regression"
    model = Linear(intercept=False)
    tiny = {"rows": 60}

    hidden: bool = setting(False, "whether an unseen H causes X, Y and Z")
    heteroskedastic: bool = setting(False, "whether the noise of Y varies between environments, rather than that of Z")
    scrambled: bool = setting(False, "whether the columns are rotated, so that none of them is X or Z")
    size: int = setting(5, "columns of X, and of Z")
    rows: int = setting(1000, "rows of each environment")
    scales: tuple[float, ...] = setting((0.2, 2.0, 5.0), "noise scale of each training environment")
    test_scale: float = setting(10.0, "noise scale of the test environment")
    choose_by: Literal["all", "last"] = setting(
        "all", "validation: fresh rows of all environments; last: the last one only, which is not trained on"
    )

    def __post_init__(self) -> None:
        if len(set(self.scales)) < len(self.scales) or len(self.scales) < 1 + (self.choose_by == "last"):
            raise ValueError("scales must be different numbers, two or more for choose_by=last.")
        if min(*self.scales, self.test_scale) <= 0:
            raise ValueError("scales and test_scale must be above 0.")
        if self.size < 1 or self.rows < 20:
            raise ValueError("size must be at least 1, and rows at least 20.")

    @property
    def columns(self) -> tuple[str, ...]:
        kinds = ("mixed",) if self.scrambled else ("X", "Z")
        return tuple(f"{kind}{i + 1}" for kind in kinds for i in range(2 * self.size // len(kinds)))

    @property
    def invariant(self) -> tuple[int, ...] | None:
        """X causes Y; with a hidden cause of both, X predicts Y by more than that. Of scrambled columns none is X."""
        return None if self.scrambled or self.hidden else tuple(range(self.size))

    def coefficients(self, seed: int) -> Array:
        causal = np.concatenate([np.ones(self.size), np.zeros(self.size)])
        return self._mix(seed, causal[None]).ravel()

    def train(self, seed: int) -> Sequence[Environment]:
        scales = self.scales if self.choose_by == "all" else self.scales[:-1]
        return self._draw(seed, "train", scales)

    def validation(self, seed: int) -> Sequence[Environment]:
        scales = self.scales if self.choose_by == "all" else self.scales[-1:]
        return self._draw(seed, "validation", scales)

    def test(self, seed: int) -> Sequence[Environment]:
        return self._draw(seed, "test", (self.test_scale,))

    def _draw(self, seed: int, part: str, scales: tuple[float, ...]) -> list[Environment]:
        rng = self.rng(seed, part)
        return [self._draw_environment(rng, seed, scale) for scale in scales]

    def _draw_environment(self, rng: np.random.Generator, seed: int, scale: float) -> Environment:
        h, noise_x, noise_y, noise_z = rng.normal(size=(4, self.rows, self.size))
        to_x, to_y, to_z = self.from_hidden(seed)
        scale_y, scale_z = (scale, 1.0) if self.heteroskedastic else (1.0, scale)
        h = h * scale
        x = product(h, to_x) + noise_x * scale
        y = x + product(h, to_y) + noise_y * scale_y
        z = y + product(h, to_z) + noise_z * scale_z
        table = self._mix(seed, np.hstack([x, z]))
        return Environment(f"e={scale:g}", table, product(y, np.ones((self.size, 1)))[:, 0])

    def from_hidden(self, seed: int) -> Array:
        """What H does to X, Y and Z: [3, size, size]. It is a part of X alone unless it is hidden."""
        if self.hidden:
            return self.rng(seed, "hidden").normal(size=(3, self.size, self.size)) / (2 * self.size)
        nothing = np.zeros((self.size, self.size))
        return np.stack([np.eye(self.size), nothing, nothing])

    def _mix(self, seed: int, rows: Array) -> Array:
        if not self.scrambled:
            return rows
        return product(rows, random_rotation(self.rng(seed, "rotation"), rows.shape[1]))
