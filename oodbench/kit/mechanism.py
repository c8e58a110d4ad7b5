"""Prediction mechanisms Y | representation, fitted to sub-populations: linear, in closed form or by a convex fit.

All of it for the trials of a pack at once, and in double precision: representations are often nearly singular.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oodbench.engine.coding import class_signs
from oodbench.engine.rules import KeptRule
from oodbench.kit.subpopulation import worst_share

if TYPE_CHECKING:
    from torch import Tensor, dtype

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
    base: Tensor | None = None,
) -> Tensor:
    """The sub-population of share alpha0 [trial] whose own mechanism differs most from that of all rows.

    Alternates, from the rows that all rows' mechanism predicts worst, with g = loss under the mechanism for all
    rows - loss under the sub-population's own. For cross-entropy g is log f_q(phi)[y] / f_tr(phi)[y]. `scaled`
    divides each loss by its variance over its own rows. Weights [trial, row]; `base` are those of all rows, if any.
    """
    return _search(representation, y, classes, alpha0, loss, passes, scaled, base)[0].float()


def explore_mechanisms(rows: Rows, alpha0: Tensor, passes: int, scaled: bool = False) -> Tensor:
    """`worst_mechanism` in what the last layer sees, for `LossMethod.explore`: [trial, row].

    `scaled` is for regression; it changes nothing for classes. Of a linear model, what was found first stays: its
    representation is x itself. Where there are too many rows to fit all, the mechanisms are fitted to a part of them,
    and other rows belong to the sub-population whose g is as large as in that part.
    """
    part = rows.part()
    if part.is_explored and not part.learns_representation:
        return part.explored
    scaled, loss = scaled and rows.is_regression, part.recipe.loss
    base = part.given_weights
    weights, mechanisms = _search(part.representation, part.y, part.classes, alpha0, loss, passes, scaled, base)
    if part is not rows:
        rows.explore_by(SimilarRows.of(part, mechanisms, alpha0))
    return weights.float()


def _search(
    representation: Tensor,
    y: Tensor,
    classes: int,
    alpha0: Tensor,
    loss: str,
    passes: int,
    scaled: bool,
    base: Tensor | None,
) -> tuple[Tensor, list[Mechanism]]:
    """The weights of `worst_mechanism`, and the mechanisms that g compares: of all rows, and the last one's own."""
    from torch import float64

    representation = with_constant(representation, float64)
    share = alpha0.double()
    mechanisms: list[Mechanism] = []

    def fit(weights: Tensor) -> Tensor:
        coefficients, outputs = fit_mechanism(representation, y, classes, weights, loss)
        losses = output_losses(outputs, y, classes, loss)
        variance = _variance(losses, weights) if scaled else None
        mechanisms[1:] = [Mechanism(coefficients, variance)]
        return losses if variance is None else losses / variance

    base = None if base is None else base.double()
    of_all = fit(representation.new_full((len(y), y.shape[-1]), 1 / y.shape[-1]) if base is None else base)
    return alternate(of_all, fit, worst_share(of_all, share, base), share, passes, base), mechanisms


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A linear mechanism."""

    coefficients: Tensor  # [trial, output, unit + 1], the constant last
    variance: Tensor | None  # [trial, 1], of its losses

    def losses(self, representation: Tensor, y: Tensor, classes: int, loss: str) -> Tensor:
        """Of any rows: [trial, row]. Single precision will do, where nothing is solved."""
        coefficients = self.coefficients.float()
        outputs = coefficients[:, :, -1:].baddbmm(coefficients[:, :, :-1], representation)
        losses = output_losses(outputs, y, classes, loss)
        return losses if self.variance is None else losses / self.variance.float()


@dataclass(frozen=True, eq=False)
class SimilarRows(KeptRule):
    """The rows on which two mechanisms differ as much as on the sub-population that was found in a part of the rows."""

    parameters: Tensor  # [trial, parameter], of the model when it was explored
    mechanisms: Sequence[Mechanism]
    least: Tensor  # [trial, 1], the gap from which on rows belong to it
    tied: Tensor  # [trial, 1], the weight of rows at that gap

    @classmethod
    def of(cls, part: Rows, mechanisms: Sequence[Mechanism], alpha0: Tensor) -> SimilarRows:
        share = alpha0.unsqueeze(-1)  # [trial, 1]
        gaps = cls._gaps(part.representation, part, mechanisms)
        ordered, places = gaps.sort(dim=-1, descending=True)
        reached = part.weights.gather(-1, places).double().cumsum(-1) < share.double() - 1e-9
        least = ordered.gather(-1, reached.sum(-1, keepdim=True).clamp(max=gaps.shape[-1] - 1))
        above, at = ((weights * part.weights).sum(-1, keepdim=True) for weights in _compare(gaps, least))
        return cls(part.parameters.clone(), mechanisms, least, ((share - above) / at).clamp(0, 1))

    def __call__(self, rows: Rows) -> Tensor:
        above, at = _compare(self._gaps(rows.represented_at(self.parameters), rows, self.mechanisms), self.least)
        weights = above + at * self.tied
        return weights if rows.given_weights is None else weights * rows.given_weights

    def tensors(self) -> dict[str, Tensor]:
        tensors = {"parameters": self.parameters, "least": self.least, "tied": self.tied}
        for number, mechanism in enumerate(self.mechanisms):
            tensors[f"coefficients {number}"] = mechanism.coefficients
            if mechanism.variance is not None:
                tensors[f"variance {number}"] = mechanism.variance
        return tensors

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, Tensor]) -> SimilarRows:
        count = sum(name.startswith("coefficients") for name in tensors)
        mechanisms = [
            Mechanism(tensors[f"coefficients {number}"], tensors.get(f"variance {number}")) for number in range(count)
        ]
        return cls(tensors["parameters"], mechanisms, tensors["least"], tensors["tied"])

    @staticmethod
    def _gaps(representation: Tensor, rows: Rows, mechanisms: Sequence[Mechanism]) -> Tensor:
        of_all, *own = (each.losses(representation, rows.y, rows.classes, rows.recipe.loss) for each in mechanisms)
        return of_all - own[0] if own else of_all


def _compare(gaps: Tensor, least: Tensor) -> tuple[Tensor, Tensor]:
    """Which gaps are larger, and which are equal but for rounding."""
    rounding = 1e-5 * (1 + least.abs())
    return (gaps > least + rounding).float(), ((gaps - least).abs() <= rounding).float()


def alternate(
    of_all: Tensor,
    fit: Callable[[Tensor], Tensor],
    weights: Tensor,
    share: Tensor,
    passes: int,
    base: Tensor | None = None,
) -> Tensor:
    """From one sub-population [trial, row] to the next: `fit` a mechanism to it, then take the share of the rows on
    which that one's losses are furthest below those of all rows' mechanism; until nothing changes any more.

    A GPU is not asked whether something changes, for to ask is to wait: further passes find the same.
    """
    for _ in range(passes):
        before, weights = weights, worst_share(of_all - fit(weights), share, base)
        if not weights.is_cuda and weights.equal(before):
            break
    return weights


def _variance(losses: Tensor, weights: Tensor) -> Tensor:
    mean = (losses * weights).sum(-1, keepdim=True)
    return ((losses - mean).square() * weights).sum(-1, keepdim=True).clamp(min=1e-12)


def fit_mechanism(representation: Tensor, y: Tensor, classes: int, weights: Tensor, loss: str) -> tuple[Tensor, Tensor]:
    """The linear mechanism that fits the weighted rows best: coefficients [trial, output, unit], and its outputs
    [trial, output, row] on all rows.

    representation [trial, unit, row], y [trial, row], weights [trial, row]; loss squared or cross_entropy.
    """
    from torch import arange

    if not y.is_floating_point() and loss != "squared":
        is_class = (y.unsqueeze(1) == arange(classes, device=y.device).view(1, -1, 1)).to(weights.dtype)
        return _fit_logits(representation, is_class, weights)  # is_class [trial, class, row]
    targets = y.unsqueeze(1) if y.is_floating_point() else class_signs(y, classes, weights.dtype)
    coefficients = _coefficients(_gram(representation, weights), representation, _weighted(targets, weights))
    return coefficients, coefficients.bmm(representation)


def output_losses(outputs: Tensor, y: Tensor, classes: int, loss: str) -> Tensor:
    """Losses [trial, row] of a mechanism's outputs [trial, output, row]."""
    if y.is_floating_point():
        return (outputs.squeeze(1) - y).square()
    if loss == "squared":
        return (outputs - class_signs(y, classes, outputs.dtype)).square().mean(1)
    return outputs.logsumexp(1) - outputs.gather(1, y.unsqueeze(1)).squeeze(1)


def least_squares(representation: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Fitted values [trial, output, row] on all rows for targets [trial, output, row]."""
    coefficients = _coefficients(_gram(representation, weights), representation, _weighted(targets, weights))
    return coefficients.bmm(representation)


def _weighted(targets: Tensor, weights: Tensor) -> Tensor:
    return targets.to(weights.dtype) * weights.unsqueeze(1)


def with_constant(representation: Tensor, number: dtype | None = None) -> Tensor:
    """A last layer has a bias; a mechanism has one too. Where there is one already, the ridge shares it out."""
    trials, units, rows = representation.shape
    padded = representation.new_empty(trials, units + 1, rows, dtype=number or representation.dtype)
    padded[:, :-1] = representation
    padded[:, -1] = 1
    return padded


def _gram(representation: Tensor, weights: Tensor) -> Tensor:
    """[trial, unit, unit]; on a CPU one trial after the other, as the weighted units of one stay in the cache."""
    from torch import cat, split

    together = len(weights) if weights.is_cuda else 1
    parts = zip(split(representation, together), split(weights.unsqueeze(1), together), strict=True)
    gram = cat([(units * weight).bmm(units.mT) for units, weight in parts])
    diagonal = gram.diagonal(dim1=1, dim2=2)
    diagonal += RIDGE * diagonal.mean(-1, keepdim=True) + 1e-12
    return gram


def _coefficients(gram: Tensor, representation: Tensor, weighted_targets: Tensor) -> Tensor:
    """Coefficients [trial, output, unit] of the weighted least squares with these normal equations."""
    from torch.linalg import cholesky_ex

    moments = weighted_targets.bmm(representation.transpose(1, 2))  # [trial, output, unit]
    factor = cholesky_ex(gram).L  # a trial that diverged gives no numbers; it must not stop its mates
    return moments.transpose(1, 2).cholesky_solve(factor).transpose(1, 2)


def _fit_logits(representation: Tensor, is_class: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Multinomial logistic regression with Böhning's bound on the curvature (1992): every step is a least squares.

    So many steps are near enough to find a sub-population, and cheap for wide representations.
    """
    gram = _gram(representation, weights)
    logits, coefficients = is_class * 0, representation.new_zeros(())
    for _ in range(ITERATIONS):
        residuals = (is_class - logits.softmax(1)) * weights.unsqueeze(1)
        step = _coefficients(gram, representation, residuals)
        coefficients, logits = coefficients + 2 * step, logits + 2 * step.bmm(representation)
    return coefficients, logits
