"""Prediction mechanisms Y | representation, fitted to sub-populations: linear, in closed form or by a convex fit.

All of it for the trials of a pack at once, and in double precision: representations are often nearly singular.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from oodbench.engine.coding import class_signs
from oodbench.kit.subpopulation import worst_share

if TYPE_CHECKING:
    from torch import Tensor

    from oodbench.engine.rows import Rows

RIDGE = 1e-6  # relative to the mean square of the representation: units that are off everywhere stay at zero
ITERATIONS = 30


def worst_mechanism(
    representation: Tensor,
    y: Tensor,
    classes: int,
    alpha0: Tensor,
    loss: str,
    passes: int,
    scaled: bool = False,
) -> Tensor:
    """The sub-population of share alpha0 [trial] whose own mechanism differs most from that of all rows.

    Alternates, from the rows that all rows' mechanism predicts worst, with g = loss under the mechanism for all
    rows - loss under the sub-population's own. For cross-entropy g is log f_q(phi)[y] / f_tr(phi)[y]. `scaled`
    divides each loss by its variance over its own rows. Weights [trial, row].
    """
    representation = with_constant(representation.double())
    share = alpha0.double()

    def fit(weights: Tensor) -> Tensor:
        losses = mechanism_losses(representation, y, classes, weights, loss)
        return losses / _variance(losses, weights) if scaled else losses

    of_all = fit(representation.new_full((len(y), y.shape[-1]), 1 / y.shape[-1]))
    return alternate(of_all, fit, worst_share(of_all, share), share, passes).float()


def explore_mechanisms(rows: Rows, alpha0: Tensor, passes: int, scaled: bool = False) -> Tensor:
    """`worst_mechanism` in what the last layer sees, for `LossMethod.explore`: [trial, row].

    `scaled` is for regression; it changes nothing for classes. Of a linear model, what was found first stays: its
    representation is x itself.
    """
    if rows.is_explored and not rows.learns_representation:
        return rows.explored
    scaled = scaled and rows.is_regression
    return worst_mechanism(rows.representation, rows.y, rows.classes, alpha0, rows.recipe.loss, passes, scaled)


def alternate(of_all: Tensor, fit: Callable[[Tensor], Tensor], weights: Tensor, share: Tensor, passes: int) -> Tensor:
    """From one sub-population [trial, row] to the next: `fit` a mechanism to it, then take the share of the rows on
    which that one's losses are furthest below those of all rows' mechanism; until nothing changes any more."""
    for _ in range(passes):
        before, weights = weights, worst_share(of_all - fit(weights), share)
        if weights.equal(before):
            break
    return weights


def _variance(losses: Tensor, weights: Tensor) -> Tensor:
    mean = (losses * weights).sum(-1, keepdim=True)
    return ((losses - mean).square() * weights).sum(-1, keepdim=True).clamp(min=1e-12)


def mechanism_losses(representation: Tensor, y: Tensor, classes: int, weights: Tensor, loss: str) -> Tensor:
    """Losses [trial, row] on all rows of the linear mechanism that fits the weighted rows best.

    representation [trial, unit, row], y [trial, row], weights [trial, row]; loss squared or cross_entropy.
    """
    if y.is_floating_point():
        return (least_squares(representation, y.unsqueeze(1), weights).squeeze(1) - y).square()
    if loss == "squared":
        signs = class_signs(y, classes, weights.dtype)
        return (least_squares(representation, signs, weights) - signs).square().mean(1)
    is_class = (y.unsqueeze(1) == y.new_tensor(range(classes)).view(1, -1, 1)).to(weights.dtype)  # [trial, class, row]
    return _cross_entropy(representation, is_class, weights)


def least_squares(representation: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Fitted values [trial, output, row] on all rows for targets [trial, output, row]."""
    weighted = targets.to(weights.dtype) * weights.unsqueeze(1)
    return _solve(_gram(representation, weights), representation, weighted)


def with_constant(representation: Tensor) -> Tensor:
    """A last layer has a bias; a mechanism has one too. Where there is one already, the ridge shares it out."""
    padded = representation.new_ones(len(representation), representation.shape[1] + 1, representation.shape[2])
    padded[:, :-1] = representation
    return padded


def _gram(representation: Tensor, weights: Tensor) -> Tensor:
    gram = (representation * weights.unsqueeze(1)).bmm(representation.transpose(1, 2))
    diagonal = gram.diagonal(dim1=1, dim2=2)
    diagonal += RIDGE * diagonal.mean(-1, keepdim=True) + 1e-12
    return gram


def _solve(gram: Tensor, representation: Tensor, weighted_targets: Tensor) -> Tensor:
    """Fitted values [trial, output, row] of the weighted least squares with these normal equations."""
    from torch.linalg import cholesky_ex

    moments = weighted_targets.bmm(representation.transpose(1, 2))  # [trial, output, unit]
    factor = cholesky_ex(gram).L  # a trial that diverged gives no numbers; it must not stop its mates
    coefficients = moments.transpose(1, 2).cholesky_solve(factor).transpose(1, 2)
    return coefficients.bmm(representation)


def _cross_entropy(representation: Tensor, is_class: Tensor, weights: Tensor) -> Tensor:
    """Multinomial logistic regression with Böhning's bound on the curvature (1992): every step is a least squares.

    So many steps are near enough to find a sub-population, and cheap for wide representations.
    """
    gram = _gram(representation, weights)
    logits = is_class * 0
    for _ in range(ITERATIONS):
        residuals = (is_class - logits.softmax(1)) * weights.unsqueeze(1)
        logits = logits + 2 * _solve(gram, representation, residuals)
    return logits.logsumexp(1) - (logits * is_class).sum(1)
