"""Inter-environmental gradient alignment: equal gradients in all environments."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Value
from oodbench.kit import check_environments, environment_gradients, equal_shares


class IGA(LossMethod):
    """Inter-environmental gradient alignment (Koyama & Yamaguchi 2020): the mean risk, and the squared distances of the
    environments' gradients from their mean, summed."""

    needs = frozenset({"environments"})
    space = {"penalty": LogUniform(1e1, 1e5, default=1e3)}

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        shares, risks = equal_shares(rows), rows.risk(rows.environments)  # [trial, environment]
        gradients = environment_gradients(rows, differentiable=True)  # [trial, environment, parameter]
        gaps = gradients - (shares.unsqueeze(-1) * gradients).sum(1, keepdim=True)
        spread = ((shares > 0) * gaps.square().sum(-1)).sum(-1)
        penalty: Tensor = hp.penalty * spread
        return (shares * risks).sum(-1) + penalty
