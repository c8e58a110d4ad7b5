"""AND-mask: step only where the environments agree on the sign of the gradient."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Hparams, LossMethod, Rows, Tensor, TrainingRows, Uniform, Value
from oodbench.kit import check_environments, masked_mean, sign_agreement


class AndMask(LossMethod):
    """AND-mask (Parascandolo et al. 2021). An agreement of exactly `threshold` passes: 1 asks all to agree."""

    needs = frozenset({"environments"})
    space = {"threshold": Uniform(0.5, 1.0, default=1.0)}

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def direction(self, rows: Rows, hp: Hparams) -> Tensor:
        gradients = rows.gradients(rows.risk(rows.environments))  # [trial, environment, parameter]
        passes = sign_agreement(gradients) >= hp.threshold.unsqueeze(-1)
        return masked_mean(gradients, passes.to(gradients.dtype))
