"""Maximum mean discrepancy: equal distributions of the representation in all environments."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Hparams, Integer, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Value
from oodbench.kit import check_environments, equal_shares, mean_kernels, mean_over_pairs, mean_risk

PRECISIONS = (1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3)


class MMD(LossMethod):
    """Maximum mean discrepancy (Li et al. 2018): the mean risk, and the mean discrepancy of what the last layer sees
    (of a linear model's outputs) between two environments, with a sum of Gaussian kernels.

    The kernel sees `sample` random rows of each step: its cost is their square.
    """

    needs = frozenset({"environments"})
    space = {
        "penalty": LogUniform(1e-1, 1e1, default=1.0),
        "sample": Integer(4, 100_000, default=128, searched=False),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        few = rows.sample(hp.sample)
        kernels = mean_kernels(few.learned, few, PRECISIONS)  # [trial, environment, environment]
        own = kernels.diagonal(dim1=1, dim2=2)
        discrepancies = own.unsqueeze(1) + own.unsqueeze(2) - 2 * kernels
        penalty: Tensor = hp.penalty * mean_over_pairs(discrepancies, equal_shares(few))
        return mean_risk(rows) + penalty
