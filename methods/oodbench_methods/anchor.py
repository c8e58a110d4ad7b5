"""Anchor regression: residuals whose mean does not depend on the environment."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Value
from oodbench.kit import check_environments, multiply, squared_means


class Anchor(LossMethod):
    """Anchor regression (Rothenhäusler et al. 2021) with the environments as anchors: the risk, and gamma - 1 times the
    squared mean residuals of the environments, weighted by their rows.

    For cross-entropy the residuals are the scores, the loss's derivatives by the outputs (Kook et al. 2022).
    """

    needs = frozenset({"environments"})
    space = {"gamma": LogUniform(1e0, 1e3, default=10.0)}

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        if rows.is_regression or rows.recipe.loss == "squared":
            squares = squared_means(rows.outputs - rows.signed_targets(), rows).mean(1)  # [trial, environment]
        else:
            squares = squared_means(rows.output_slopes, rows).sum(1)
        inside = (rows.environments > 0).to(rows.weights.dtype)
        sizes = multiply(inside, rows.weights.unsqueeze(-1)).squeeze(-1)  # [trial, environment]
        penalty: Tensor = (hp.gamma - 1) * (sizes * squares).sum(-1)
        return rows.risk() + penalty
