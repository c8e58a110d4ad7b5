"""Risk distribution matching: equal distributions of the losses in the worst environment and in all."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Choice, Hparams, Integer, LossMethod, Rows, Tensor, TrainingRows, Uniform, Value
from oodbench.kit import annealed, check_environments, equal_shares, gaussian_kernel, variances

PRECISIONS = (1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3)


class RDM(LossMethod):
    """Risk distribution matching (Nguyen et al. 2024): the mean risk, the discrepancy of the losses in the worst
    environment from those in all, and their variances, from `anneal` steps on.

    The kernel of the discrepancy sees `sample` random rows of each step.
    """

    needs = frozenset({"environments"})
    space = {
        "penalty": Uniform(0.1, 10.0, default=5.0),
        "variance": Uniform(0.001, 0.007, default=0.004),
        "anneal": Choice(0, 100, 500, default=100),
        "sample": Integer(4, 100_000, default=128, searched=False),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        few = rows.sample(hp.sample)
        risks = rows.risk(rows.environments)  # [trial, environment]
        worst = risks.detach().where(equal_shares(few) > 0, -1.0).argmax(-1)
        of_few, of_all = compared(few, worst), compared(rows, worst)  # [trial, 2, row]
        gap = (of_few[:, :1] - of_few[:, 1:]).mT  # [trial, row, 1]
        discrepancy = (gap.mT @ gaussian_kernel(few.losses.unsqueeze(1), PRECISIONS) @ gap).flatten()
        spread = variances(rows.losses.unsqueeze(1), of_all).sum((1, 2))
        penalty, variance = (annealed(weight, hp.anneal, rows.step, 0.0) for weight in (hp.penalty, hp.variance))
        return (equal_shares(rows) * risks).sum(-1) + penalty * discrepancy + variance * spread


def compared(rows: Rows, worst: Tensor) -> Tensor:
    """The worst environment, and all of them together: weights [trial, 2, row]."""
    from torch import stack

    everyone = (equal_shares(rows).unsqueeze(1) @ rows.environments).squeeze(1)
    chosen = rows.environments.gather(1, worst.view(-1, 1, 1).expand(-1, 1, everyone.shape[1])).squeeze(1)
    return stack([chosen, everyone], 1)
