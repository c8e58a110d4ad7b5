"""Empirical quantile risk minimization: a high quantile of the environments' risks."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Choice, Hparams, LossMethod, Rows, Tensor, TrainingRows, Uniform, Value
from oodbench.kit import check_environments, equal_shares

HALVINGS = 24


class EQRM(LossMethod):
    """Quantile risk minimization (Eastwood et al. 2022): the `alpha` quantile of a Gaussian kernel density of the
    environments' risks, from `burn_in` steps on; before, their mean. With two or three environments it is little more
    than their mean and spread."""

    needs = frozenset({"environments"})
    space = {"alpha": Uniform(0.5, 0.99, default=0.75), "burn_in": Choice(0, 100, 500, default=100)}

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        shares, risks = equal_shares(rows), rows.risk(rows.environments)  # [trial, environment]
        mean = (shares * risks).sum(-1)
        return quantile(risks, shares, hp.alpha).where(hp.burn_in <= rows.step, mean)


def quantile(risks: Tensor, shares: Tensor, alpha: Tensor) -> Tensor:
    """The alpha [trial] quantile of the kernel density of risks [trial, environment], with its derivative."""
    from torch.special import ndtr

    alike = shares.square().sum(-1, keepdim=True)  # one over the number of environments
    gaps = risks - (shares * risks).sum(-1, keepdim=True)
    variance = (shares * gaps.square()).sum(-1, keepdim=True) / (1 - alike).clamp(min=1e-6)
    bandwidth = 1.06 * (variance + 1e-12).sqrt() * alike**0.2  # the rule of thumb of Silverman (1986)
    fixed, wide = risks.detach(), bandwidth.detach()
    low, high = fixed.amin(-1, keepdim=True) - 4 * wide, fixed.amax(-1, keepdim=True) + 4 * wide
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = (shares * ndtr((middle - fixed) / wide)).sum(-1, keepdim=True) < alpha.unsqueeze(-1)
        low, high = middle.where(below, low), high.where(below, middle)
    scaled = (high - risks) / bandwidth
    density = (shares * (-(scaled.detach().square()) / 2).exp() / wide).sum(-1) / (2 * 3.141592653589793) ** 0.5
    # a Newton step from the root: it moves nothing, and has the derivative of the root
    excess = (shares * ndtr(scaled)).sum(-1) - alpha
    root: Tensor = high.squeeze(-1) - excess / density.clamp(min=1e-12)
    return root
