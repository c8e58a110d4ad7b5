"""Mechanisms Y | phi as densities: their maximum likelihood, their divergence, and where it is largest.

Y given phi is Gaussian around a linear function of phi, or a multinomial logistic regression on it. All mechanisms
here are fitted to sub-populations of the same rows, weights [part, row], in double precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from oodbench.kit.mechanism import alternate, least_squares, with_constant
from oodbench.kit.subpopulation import worst_share

if TYPE_CHECKING:
    from torch import Tensor

NOISE_FLOOR = 0.01  # of the reference's noise scale: rows that can be fitted exactly would be infinitely far from it
SPREAD_FLOOR = 1e-3  # of the spread of y: no mechanism, the reference included, is taken to be more exact
PENALTY = 1e-4  # on the squared distance of logistic coefficients from the reference's: rows of one class have no fit
NEWTON_STEPS, HALVINGS, ENOUGH = 50, 30, 1e-6
FIRST_PASSES, PASSES = 2, 10
MOST_PULLS = 8
LINES = 40  # from which a search begins too; more of them find no more (see docs/board.md)
MOST_NUMBERS = 1 << 20  # of the weights that are searched at once


@dataclass(frozen=True, eq=False)
class Mechanisms:
    """Rows, and the sub-population to which the reference mechanism P(Y | phi) is fitted."""

    phi: Tensor  # [unit, row], white
    y: Tensor  # [row]: of unit spread, or class numbers
    classes: int
    reference: Tensor  # [row]

    def divergence(self, weights: Tensor) -> Tensor:
        """KL(Q(Y | phi) || P(Y | phi)), the mean of log q / p under Q, for each sub-population Q: [part].

        p is among the mechanisms that q is chosen from, so the mean is not negative, but for rounding.
        """
        return (weights * (self.of_reference - self.losses(weights))).sum(-1).clamp(min=0)

    def furthest(self, shares: Tensor) -> tuple[Tensor, Tensor]:
        """For each share the sub-population with the largest divergence found, and that: [share, row], [share].

        In turn the mechanism of largest likelihood for the rows, and the rows of largest likelihood ratio for the
        mechanism: no step decreases the divergence. It ends in a local maximum, so it starts from several sides.
        """
        from torch import stack

        starts, together = self._starts(), max(1, MOST_NUMBERS // (len(shares) * self.phi.shape[1]))
        begun = [self._begin(starts[at : at + together], shares) for at in range(0, len(starts), together)]
        best = stack([reached for _, reached in begun]).argmax(0)
        weights = stack([weights for weights, _ in begun])[best, range(len(shares))]
        weights = alternate(self.of_reference, self.losses, weights, shares, PASSES)
        return weights, self.divergence(weights)

    def _begin(self, starts: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        """After a few steps from each start, the furthest of each share: [share, row], [share]."""
        every = shares.repeat(len(starts))
        weights = worst_share(starts.repeat_interleave(len(shares), 0), every)
        weights = alternate(self.of_reference, self.losses, weights, every, FIRST_PASSES)
        reached, best = self.divergence(weights).view(len(starts), -1).max(0)
        return weights.view(len(starts), len(shares), -1)[best, range(len(shares))], reached

    def drawn_anew(self) -> Mechanisms:
        """The same phi, with y drawn from the reference mechanism, which is then exact."""
        from torch import Generator, cat, multinomial, randn

        chance = Generator(device="cpu").manual_seed(0)
        if self.y.is_floating_point():
            residuals = self._residuals(self.reference.unsqueeze(0))[0]
            noise = (self.reference * residuals.square()).sum().sqrt()
            y = self.y - residuals + noise * randn(len(self.y), generator=chance, dtype=self.y.dtype)
        else:
            logits = (self._reference_coefficients @ self._representation)[0]
            others = cat([logits.new_zeros(1, len(self.y)), logits]).softmax(0)
            y = multinomial(others.T, 1, generator=chance)[:, 0]
        return Mechanisms(self.phi, y, self.classes, self.reference)

    def losses(self, weights: Tensor) -> Tensor:
        """-log q(y | phi), up to a constant, of all rows under each sub-population's mechanism: [part, row]."""
        if self.y.is_floating_point():
            return self._gaussian(weights, self._least_noise)
        return self._logistic(self._coefficients(weights, self._reference_coefficients))

    @cached_property
    def of_reference(self) -> Tensor:
        """-log p(y | phi), up to the same constant: [1, row]."""
        if self.y.is_floating_point():
            return self._gaussian(self.reference.unsqueeze(0), SPREAD_FLOOR)
        return self._logistic(self._reference_coefficients)

    def _starts(self) -> Tensor:
        """Scores [start, row], from whose largest rows a search begins: those that the reference predicts worst or
        best, those that would shift or stretch its predictions most, either way, and those nearest a line."""
        from torch import cat

        worst = self.of_reference
        if self.y.is_floating_point():
            residuals = self._residuals(self.reference.unsqueeze(0))  # [output, row]
            fitted = self.y - residuals
        else:
            fitted = (self._reference_coefficients @ self._representation)[0]
            residuals = self._is_class - (fitted - _normalizer(fitted.unsqueeze(0))).exp()
        # of several units, only their fitted sum does not depend on how they are coded
        along = self.phi if len(self.phi) == 1 else fitted - fitted.mean(-1, keepdim=True)
        pulls = cat([residuals, residuals * along])[:MOST_PULLS]
        return cat([worst, -worst, pulls, -pulls, *self._near_lines()])

    def _near_lines(self) -> list[Tensor]:
        """Of y over phi, through two random rows each: a sub-population may have any mechanism, not only one that is
        near the reference's. Classes have no such line.

        The rows are drawn by their rank in the reference's likelihood: neither their order nor their coding matters.
        """
        from torch import Generator, rand

        if not self.y.is_floating_point() or len(self.phi) != 1:
            return []
        chance = Generator(device="cpu").manual_seed(0)
        rows = len(self.y)
        first = (rand(LINES, generator=chance) * rows).long()
        second = (first + 1 + (rand(LINES, generator=chance) * (rows - 1)).long()) % rows
        phi, y = self.phi[0], self.y
        ranked = _tie(phi.square()).argsort(stable=True)
        ranked = ranked[self.of_reference[0, ranked].argsort(stable=True)]
        first, second = ranked[first], ranked[second]
        across = phi[second] - phi[first]
        slopes = (y[second] - y[first]) / across.where(across.abs() > SPREAD_FLOOR, SPREAD_FLOOR)
        lines = y[first].unsqueeze(1) + slopes.unsqueeze(1) * (phi - phi[first].unsqueeze(1))
        return [-(y - lines).abs()]

    @cached_property
    def _representation(self) -> Tensor:
        return with_constant(self.phi.unsqueeze(0)).squeeze(0)  # [unit, row]

    # Regression

    def _residuals(self, weights: Tensor) -> Tensor:
        representation = self._representation.expand(len(weights), -1, -1)
        return self.y - least_squares(representation, self.y.expand(len(weights), 1, -1), weights).squeeze(1)

    def _gaussian(self, weights: Tensor, least_noise: float) -> Tensor:
        squares = self._residuals(weights).square()
        variance = (weights * squares).sum(-1, keepdim=True).clamp(min=least_noise**2)
        return _tie((squares / variance + variance.log()) / 2)

    @cached_property
    def _least_noise(self) -> float:
        variance = float((self.reference * self._residuals(self.reference.unsqueeze(0)).square()).sum())
        return float(max(NOISE_FLOOR * variance**0.5, SPREAD_FLOOR))

    # Classification: class 0 has logit zero, the others have coefficients

    @cached_property
    def _is_class(self) -> Tensor:
        others = self.y.new_tensor(range(1, self.classes))
        return (self.y == others.unsqueeze(1)).to(self.phi.dtype)  # [class, row]

    @cached_property
    def _reference_coefficients(self) -> Tensor:
        zero = self.phi.new_zeros(1, self.classes - 1, len(self._representation))
        return self._coefficients(self.reference.unsqueeze(0), zero)

    def _logistic(self, coefficients: Tensor) -> Tensor:
        logits = coefficients @ self._representation  # [part, class, row]
        return _tie(_normalizer(logits) - (logits * self._is_class).sum(1))

    def _coefficients(self, weights: Tensor, origin: Tensor) -> Tensor:
        """Logistic coefficients [part, class, unit] of maximum likelihood, but for the penalty on leaving `origin`."""
        most = int(weights.count_nonzero(-1).max())
        weights, rows = weights.topk(most, sorted=False)  # the others do not count
        representation = self._representation[:, rows].transpose(0, 1)  # [part, unit, row]
        return _newton(representation, self._is_class[:, rows].transpose(0, 1), weights, origin)


def _newton(representation: Tensor, is_class: Tensor, weights: Tensor, origin: Tensor) -> Tensor:
    """Newton's method on the penalised likelihood; a step that would lower it is halved, and so never worsens it."""
    from torch.linalg import solve

    def reach(coefficients: Tensor) -> tuple[Tensor, Tensor]:
        logits = coefficients @ representation
        normalizer = _normalizer(logits)
        mean = (weights * ((logits * is_class).sum(1) - normalizer)).sum(-1)
        value = mean - PENALTY / 2 * (coefficients - origin).square().sum((1, 2))
        return value, (logits - normalizer.unsqueeze(1)).exp_()

    coefficients = origin.expand(len(weights), -1, -1)
    parts, classes, units = coefficients.shape
    weighted = representation * weights.unsqueeze(1)
    value, chance = reach(coefficients)
    for _ in range(NEWTON_STEPS):
        slope = (is_class - chance).bmm(weighted.mT) - PENALTY * (coefficients - origin)
        spread = (chance.unsqueeze(2) * representation.unsqueeze(1)).flatten(1, 2)  # [part, class x unit, row]
        curvature = -(spread * weights.unsqueeze(1)).bmm(spread.mT)
        own_class = curvature.view(parts, classes, units, classes, units).diagonal(dim1=1, dim2=3)
        own_class += spread.bmm(weighted.mT).view(parts, classes, units, units).permute(0, 2, 3, 1)
        curvature.diagonal(dim1=1, dim2=2).add_(PENALTY)
        step = solve(curvature, slope.flatten(1)).view_as(slope)
        for _ in range(HALVINGS):
            reached, chance = reach(coefficients + step)
            if not (reached < value).any():
                break
            step = step * (1 - (reached < value).to(step.dtype) / 2).view(-1, 1, 1)
        coefficients = coefficients + step
        gained, value = (reached - value).max(), reached
        if gained < ENOUGH:
            break
    return coefficients


def _normalizer(logits: Tensor) -> Tensor:
    """log(1 + sum of exp logits) over classes."""
    from torch.nn.functional import softplus

    return softplus(logits.logsumexp(1) if logits.shape[1] > 1 else logits.squeeze(1))


def _tie(losses: Tensor) -> Tensor:
    """Equal rows get equal losses, whatever the order in which a kernel adds."""
    return losses.round(decimals=10)
