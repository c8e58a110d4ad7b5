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

    def uniform(self, *shape: int) -> Tensor:
        """Numbers in [0, 1)."""
        return self._stack([torch.rand(shape, generator=generator) for generator in self.generators])

    def normal(self, *shape: int) -> Tensor:
        return self._stack([torch.randn(shape, generator=generator) for generator in self.generators])

    def permutation(self, size: int) -> Tensor:
        return self._stack([torch.randperm(size, generator=generator) for generator in self.generators])

    def beta(self, alpha: Tensor, *shape: int) -> Tensor:
        """Beta(alpha, alpha) for alpha [trial], from two uniform numbers each (Devroye 1996)."""
        first, second = self.uniform(2, *shape).unbind(1)
        logarithms = first.clamp(min=1e-30).log() / alpha.view(-1, *[1] * len(shape))
        ratio = logarithms.exp() / -logarithms.expm1().clamp(max=-1e-30)
        cosine = (2 * torch.pi * second).cos()
        return (1 + cosine / (cosine.square() + ratio).sqrt().clamp(min=1e-30)) / 2

    def _stack(self, draws: Sequence[Tensor]) -> Tensor:
        return send(torch.stack(list(draws)), self.device)


def shuffle(rows: int, order: tuple[int, int], use: str) -> Tensor:
    """The numbers of so many rows in random order [row], for a use of a trial's order: nothing else changes it."""
    sequence = np.random.SeedSequence([*order, *use.encode()])
    return torch.randperm(rows, generator=Generator().manual_seed(int(sequence.generate_state(1, np.uint32)[0])))
