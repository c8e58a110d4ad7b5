"""Risk extrapolation: equal risks in all environments."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Choice, Hparams, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Value
from oodbench.kit import annealed, check_environments, equal_shares


class VREx(LossMethod):
    """Risk extrapolation, V-REx (Krueger et al. 2021): the mean and the population variance of the environments' risks.

    The variance has weight 1 before `anneal` steps.
    """

    needs = frozenset({"environments"})
    space = {
        "penalty": LogUniform(1e-1, 1e5, default=10.0),
        "anneal": Choice(0, 100, 500, default=100),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        shares, risks = equal_shares(rows), rows.risk(rows.environments)  # [trial, environment]
        mean = (shares * risks).sum(-1, keepdim=True)
        variance = (shares * (risks - mean).square()).sum(-1)
        return mean.squeeze(-1) + annealed(hp.penalty, hp.anneal, rows.step) * variance
