"""Mechanisms Y | phi as densities: their maximum likelihood, their divergence, and where it is largest.

Y given phi is Gaussian around a linear function of phi, or a multinomial logistic regression on it. All mechanisms
here are fitted to sub-populations of the same rows, weights [part, row], in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
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
NEWTON_STEPS, HALVINGS, ENOUGH, ROUNDING = 50, 30, 1e-6, 1e-12
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
        return self._divergence(weights, self._refit())

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
        refit = self._refit()
        weights = alternate(self.of_reference, refit, weights, shares, PASSES)
        return weights, self._divergence(weights, refit)

    def _begin(self, starts: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        """After a few steps from each start, the furthest of each share: [share, row], [share]."""
        every = shares.repeat(len(starts))
        weights = worst_share(starts.repeat_interleave(len(shares), 0), every)
        refit = self._refit()
        weights = alternate(self.of_reference, refit, weights, every, FIRST_PASSES)
        reached, best = self._divergence(weights, refit).view(len(starts), -1).max(0)
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

    def _divergence(self, weights: Tensor, refit: Callable[[Tensor], Tensor]) -> Tensor:
        return (weights * (self.of_reference - refit(weights))).sum(-1).clamp(min=0)

    def _refit(self) -> Callable[[Tensor], Tensor]:
        """A function of weights: -log q(y | phi), up to a constant, of all rows under each sub-population's mechanism,
        [part, row]. Asked again about parts that changed a little, it goes on from the mechanisms that it found."""
        found: Tensor | None = None

        def losses(weights: Tensor) -> Tensor:
            nonlocal found
            if self.y.is_floating_point():
                return self._gaussian(weights, self._least_noise)
            origin = self._reference_coefficients
            found = self._coefficients(weights, origin, origin if found is None else found)
            return self._logistic(found)

        return losses

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
        return self._coefficients(self.reference.unsqueeze(0), zero, zero)

    def _logistic(self, coefficients: Tensor) -> Tensor:
        logits = coefficients @ self._representation  # [part, class, row]
        return _tie(_normalizer(logits) - (logits * self._is_class).sum(1))

    def _coefficients(self, weights: Tensor, origin: Tensor, start: Tensor) -> Tensor:
        """Logistic coefficients [part, class, unit] of maximum likelihood, but for the penalty on leaving `origin`."""
        from torch import empty

        counts = weights.count_nonzero(-1)
        found = empty(len(weights), *origin.shape[1:], dtype=origin.dtype, device=origin.device)
        few = 2 * counts <= counts.max()
        for parts in (few, ~few):  # else the small parts would cost as much as the large ones
            if parts.any():
                own, rows = weights[parts].topk(int(counts[parts].max()), sorted=False)  # the others do not count
                representation = self._representation[:, rows].transpose(0, 1)  # [part, unit, row]
                newton = _Newton(representation, self._is_class[:, rows].transpose(0, 1), own, origin)
                found[parts] = newton.maximize(start.expand_as(found)[parts])
        return found


@dataclass(frozen=True, eq=False)
class _Newton:
    """Newton's method on the penalised likelihood; a step that would lower it is halved, and so never worsens it."""

    representation: Tensor  # [part, unit, row]
    is_class: Tensor  # [part, class, row]
    weights: Tensor  # [part, row]
    origin: Tensor  # [1, class, unit]

    def maximize(self, start: Tensor) -> Tensor:
        """Coefficients [part, class, unit]. A part that gains no more is left as it is: the others go on without it."""
        from torch import arange

        coefficients = start.expand(len(self.weights), -1, -1).clone()
        going = arange(len(coefficients), device=coefficients.device)
        held, own = self, coefficients
        value, chance = held._reach(own)
        for _ in range(NEWTON_STEPS):
            step = held._step(own, chance)
            for _ in range(HALVINGS):
                reached, chance = held._reach(own + step)
                lowered = reached < value - ROUNDING
                if not lowered.any():
                    break
                step = step * (1 - lowered.to(step.dtype) / 2).view(-1, 1, 1)
            own = own + step
            coefficients[going] = own
            gains, value = reached - value >= ENOUGH, reached
            if not gains.any():
                break
            if 2 * int(gains.sum()) <= len(going):
                going, own, value, chance = going[gains], own[gains], value[gains], chance[gains]
                held = _Newton(held.representation[gains], held.is_class[gains], held.weights[gains], self.origin)
        return coefficients

    def _reach(self, coefficients: Tensor) -> tuple[Tensor, Tensor]:
        """The likelihood [part], and the chance of each class [part, class, row]."""
        logits = coefficients @ self.representation
        normalizer = _normalizer(logits)
        mean = (self.weights * ((logits * self.is_class).sum(1) - normalizer)).sum(-1)
        value = mean - PENALTY / 2 * (coefficients - self.origin).square().sum((1, 2))
        return value, (logits - normalizer.unsqueeze(1)).exp_()

    def _step(self, coefficients: Tensor, chance: Tensor) -> Tensor:
        from torch.linalg import solve

        parts, classes, units = coefficients.shape
        slope = (self.is_class - chance).bmm(self._weighted.mT) - PENALTY * (coefficients - self.origin)
        if classes == 1:
            curvature = (self._weighted * (chance - chance.square())).bmm(self.representation.mT)
        else:
            spread = (chance.unsqueeze(2) * self.representation.unsqueeze(1)).flatten(1, 2)  # [part, class x unit, row]
            curvature = -(spread * self.weights.unsqueeze(1)).bmm(spread.mT)
            own_class = curvature.view(parts, classes, units, classes, units).diagonal(dim1=1, dim2=3)
            own_class += spread.bmm(self._weighted.mT).view(parts, classes, units, units).permute(0, 2, 3, 1)
        curvature.diagonal(dim1=1, dim2=2).add_(PENALTY)
        step: Tensor = solve(curvature, slope.flatten(1)).view_as(slope)
        return step

    @cached_property
    def _weighted(self) -> Tensor:
        return self.representation * self.weights.unsqueeze(1)


def _normalizer(logits: Tensor) -> Tensor:
    """log(1 + sum of exp logits) over classes."""
    from torch.nn.functional import softplus

    return softplus(logits.logsumexp(1) if logits.shape[1] > 1 else logits.squeeze(1))


def _tie(losses: Tensor) -> Tensor:
    """Equal rows get equal losses, whatever the order in which a kernel adds."""
    return losses.round(decimals=10)
