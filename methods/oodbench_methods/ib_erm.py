"""The information bottleneck beside the risk: a representation that varies little within environments."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Choice, Hparams, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Value
from oodbench.kit import annealed, bottleneck, check_environments, mean_risk


class IBERM(LossMethod):
    """Information-bottleneck ERM (Ahuja et al. 2021): the mean risk, and the mean variance of what the last layer sees
    within environments (of a linear model's outputs), from `anneal` steps on."""

    needs = frozenset({"environments"})
    space = {
        "bottleneck": LogUniform(1e-1, 1e5, default=100.0),
        "anneal": Choice(0, 100, 500, default=100),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        weight = annealed(hp.bottleneck, hp.anneal, rows.step, before=0.0)
        return mean_risk(rows) + weight * bottleneck(rows)
