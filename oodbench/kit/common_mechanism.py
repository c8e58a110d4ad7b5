"""The linear mechanism that clusters have in common: their mean risk, and a penalty where it is not best for each.

All of it on the clusters' moments, as `cluster_moments` gives them: its cost does not depend on the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oodbench.kit.clustering import solve

if TYPE_CHECKING:
    from torch import Tensor

    from oodbench.engine.trainer import Trainer

STEPS, LEARNING_RATE = 1000, 1e-2


def invariant_by_gradient(grams: Tensor, crosses: Tensor, rank: Tensor, penalty: Tensor, trainer: Trainer) -> Tensor:
    """min mean risk of the clusters + penalty x spread of the risks' gradients by theta: a least squares.

    grams [trial, cluster, direction, direction], crosses [trial, cluster, output, direction]; theta [trial, output,
    direction]. For two clusters the spread is the mean squared difference of their gradients.
    """
    gram, cross = grams.mean(1), crosses.mean(1)
    gaps, cross_gaps = 2 * (grams - gram.unsqueeze(1)), 2 * (crosses - cross.unsqueeze(1))
    weight = (2 * penalty / rank).view(-1, 1, 1).double()
    return solve(gram + weight * (gaps @ gaps).sum(1), cross + weight * (cross_gaps @ gaps).sum(1))


def invariant_by_scale(grams: Tensor, crosses: Tensor, rank: Tensor, penalty: Tensor, trainer: Trainer) -> Tensor:
    """min mean risk of the clusters + penalty x spread of the risks' slopes as theta is scaled, by gradient steps.

    Shapes as for `invariant_by_gradient`.
    """
    import torch

    grams, crosses = grams.float(), crosses.float()
    theta = solve(grams.double().mean(1), crosses.double().mean(1)).requires_grad_()
    rate, decay = penalty.new_full(theta.shape[:1], LEARNING_RATE), penalty.new_zeros(theta.shape[:1])
    optimizer = trainer.optimizer("adam", theta, rate, decay)
    for _ in range(STEPS):
        size = (theta.unsqueeze(1) @ grams * theta.unsqueeze(1)).sum((2, 3))  # [trial, cluster]
        fit = (crosses * theta.unsqueeze(1)).sum((2, 3))
        slopes = 2 * (size - fit)
        spread = 2 * (slopes - slopes.mean(1, keepdim=True)).square().sum(1)
        (gradient,) = torch.autograd.grad(((size - 2 * fit).mean(1) + penalty * spread).sum(), theta)
        optimizer.step(gradient)
    return theta.detach()


def leading_projection(rank: Tensor, directions: int) -> Tensor:
    """The projections [trial, direction, direction] onto the first rank [trial] of so many directions."""
    from torch import arange

    return (arange(directions, device=rank.device) < rank.unsqueeze(1)).float().diag_embed()


def span_projection(theta: Tensor) -> Tensor:
    """The projections [trial, direction, direction] onto what coefficients [trial, output, direction] use."""
    from torch.linalg import qr

    directions: Tensor = qr(theta.mT).Q
    return directions @ directions.mT
