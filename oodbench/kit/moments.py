"""Variances and covariances under sub-populations, with their derivatives in closed form.

A derivative by the mean is zero, and a covariance is symmetric: autograd would compute what vanishes, and twice what is
equal. These can be differentiated once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from oodbench.engine.products import multiply


class Variances(torch.autograd.Function):
    """Mean squared distances from the mean [trial, k, unit] of values [trial, unit, row], weights [trial, k, row]."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weights: Tensor) -> Tensor:
        means = multiply(values, weights.mT)  # [trial, unit, k]
        ctx.save_for_backward(values, weights, means)
        parts = zip(means.mT.unsqueeze(-1).unbind(1), weights.unbind(1), strict=True)
        return torch.stack([_mean((values - mean).square_(), part) for mean, part in parts], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        values, weights, means = ctx.saved_tensors
        total = torch.zeros_like(values)
        slopes = (2 * gradient).mT  # [trial, unit, k]
        for place, part in enumerate(weights.unbind(1)):
            own = slice(place, place + 1)
            total.addcmul_((values - means[..., own]).mul_(slopes[..., own]), part.unsqueeze(1))
        return total, None


class Covariances(torch.autograd.Function):
    """Mean products of distances from the mean [trial, k, unit, unit]; arguments as for variances."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weights: Tensor) -> Tensor:
        means = multiply(values, weights.mT)  # [trial, unit, k]
        ctx.save_for_backward(values, weights, means)
        gaps = (
            (values - mean, part)
            for mean, part in zip(means.mT.unsqueeze(-1).unbind(1), weights.unbind(1), strict=True)
        )
        return torch.stack([multiply(gap * part.unsqueeze(1), gap.mT) for gap, part in gaps], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        values, weights, means = ctx.saved_tensors
        total = torch.zeros_like(values)
        both = gradient + gradient.mT
        for place, part in enumerate(weights.unbind(1)):
            gap = values - means[..., place : place + 1]
            total.addcmul_(multiply(both[:, place].mT, gap), part.unsqueeze(1))
        return total, None


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    """[trial, unit] of values [trial, unit, row] under weights [trial, row]."""
    return multiply(values, weights.unsqueeze(-1)).squeeze(-1)
