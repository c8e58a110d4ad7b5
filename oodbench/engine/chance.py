"""Random numbers of a pack: every trial's from a generator of its own, so that no trial depends on its mates; and the
order of the rows, which the trials of a seed share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Generator, Tensor

from oodbench.engine.device import send


class Chance:
    """Random numbers [trial, ...] on the device of the pack."""

    def __init__(self, entropies: Sequence[int], device: torch.device) -> None:
        self.generators = [Generator().manual_seed(entropy) for entropy in entropies]
        self.device = device
        self.alphas: tuple[Tensor, int, list[float]] | None = None

    def uniform(self, *shape: int) -> Tensor:
        """Numbers in [0, 1)."""
        return self._stack([torch.rand(shape, generator=generator) for generator in self.generators])

    def normal(self, *shape: int) -> Tensor:
        return self._stack([torch.randn(shape, generator=generator) for generator in self.generators])

    def permutation(self, size: int) -> Tensor:
        return self._stack([torch.randperm(size, generator=generator) for generator in self.generators])

    def beta(self, alpha: Tensor, *shape: int) -> Tensor:
        """Beta(alpha, alpha) for alpha [trial]: two gamma variables, the share of the first."""
        pairs = [
            torch._standard_gamma(torch.full((2, *shape), value), generator=generator)
            for value, generator in zip(self._fetched(alpha), self.generators, strict=True)
        ]
        first, second = self._stack(pairs).clamp(min=1e-30).unbind(1)
        return first / (first + second)

    def _fetched(self, alpha: Tensor) -> list[float]:
        """Its values, fetched once from a GPU: a hyper-parameter is the same tensor in every step."""
        if self.alphas is None or self.alphas[0] is not alpha or self.alphas[1] != alpha._version:
            self.alphas = alpha, alpha._version, alpha.tolist()
        return self.alphas[2]

    def _stack(self, draws: Sequence[Tensor]) -> Tensor:
        return send(torch.stack(list(draws)), self.device)


def shuffle(rows: int, order: tuple[int, int], use: str) -> Tensor:
    """The numbers of so many rows in random order [row], for a use of a trial's order: nothing else changes it."""
    sequence = np.random.SeedSequence([*order, *use.encode()])
    return torch.randperm(rows, generator=Generator().manual_seed(int(sequence.generate_state(1, np.uint32)[0])))
