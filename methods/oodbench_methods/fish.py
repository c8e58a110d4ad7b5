"""Gradient matching: steps in one environment after the other, and then a share of the way they lead."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Choice, Hparams, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Value
from oodbench.kit import check_environments


class Fish(LossMethod):
    """Fish (Shi et al. 2022): its first-order algorithm, with plain gradient steps inside, as printed.

    Each step visits all environments once, in random order. Plain steps need larger learning rates than Adam's.
    """

    needs = frozenset({"environments"})
    optimizer = "plain"
    space = {
        "learning_rate": LogUniform(1e-3, 1.0, default=5e-2),
        "meta_step": Choice(0.5, 0.1, 0.05),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def direction(self, rows: Rows, hp: Hparams) -> Tensor:
        inner, rate = rows.parameters.detach(), hp.learning_rate.unsqueeze(-1)
        for weights in in_random_order(rows).unbind(1):
            here = rows.at(inner.requires_grad_())
            inner = (inner - rate * here.descent(here.risk(weights), "Fish.direction")).detach()
        direction: Tensor = hp.meta_step.unsqueeze(-1) * (rows.parameters.detach() - inner)
        return direction


def in_random_order(rows: Rows) -> Tensor:
    """The environments [trial, environment, row], each trial's in an order of its own."""
    order = rows.uniform(rows.environments.shape[1]).argsort(-1)
    return rows.environments.gather(1, order.unsqueeze(-1).expand_as(rows.environments))
