"""Risk distribution matching: equal distributions of the losses in the worst environment and in all."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Choice, Hparams, Integer, LossMethod, Rows, Tensor, TrainingRows, Uniform, Value
from oodbench.kit import annealed, check_environments, equal_shares, mean_kernels, multiply, variances

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
        from torch import stack
        from torch.nn.functional import one_hot

        few, shares = rows.sample(hp.sample), equal_shares(rows)
        risks = rows.risk(rows.environments)  # [trial, environment]
        worst = risks.detach().masked_fill(~(equal_shares(few) > 0), -1.0).argmax(-1)
        worst = one_hot(worst, risks.shape[1]).to(risks.dtype)
        gap = (worst - equal_shares(few)).unsqueeze(-1)  # [trial, environment, 1]
        discrepancy = multiply(multiply(gap.mT, mean_kernels(few.losses.unsqueeze(1), few, PRECISIONS)), gap).flatten()
        compared = multiply(stack([worst, shares], 1), rows.environments)  # [trial, 2, row]
        spread = variances(rows.losses.unsqueeze(1), compared).sum((1, 2))
        penalty, variance = (annealed(weight, hp.anneal, rows.step, 0.0) for weight in (hp.penalty, hp.variance))
        return (shares * risks).sum(-1) + penalty * discrepancy + variance * spread
