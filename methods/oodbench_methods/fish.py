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

    def start(self, rows: Rows, hp: Hparams) -> Mapping[str, Tensor]:
        return {"places": places_of_environments(rows)} if sees_environments_alone(rows) else {}

    def direction(self, rows: Rows, hp: Hparams) -> Tensor:
        inner, rate = rows.parameters.detach(), hp.learning_rate.unsqueeze(-1)
        for number in in_random_order(rows).unbind(1):
            own = rows.take(chosen(rows.state.places, number)) if sees_environments_alone(rows) else rows
            here = own.at(inner.requires_grad_())
            risk = here.risk(chosen(here.environments, number))
            inner = (inner - rate * here.descent(risk, "Fish.direction")).detach()
        direction: Tensor = hp.meta_step.unsqueeze(-1) * (rows.parameters.detach() - inner)
        return direction


def in_random_order(rows: Rows) -> Tensor:
    """The numbers of the environments [trial, environment], each trial's in an order of its own."""
    return rows.uniform(rows.environments.shape[1]).argsort(-1)


def sees_environments_alone(rows: Rows) -> bool:
    """Whether an inner step computes its environment's rows only: a linear model has all rows sooner than some."""
    return rows.learns_representation and not rows.is_part


def places_of_environments(rows: Rows) -> Tensor:
    """The rows of every environment, filled up with others to as many as the largest has: [trial, environment, row]."""
    own = rows.environments > 0
    return (~own).long().argsort(dim=-1, stable=True)[..., : int(own.sum(-1).max())]


def chosen(values: Tensor, number: Tensor) -> Tensor:
    """Of values [trial, environment, row], those of one environment [trial] each: [trial, row]."""
    return values.gather(1, number.view(-1, 1, 1).expand(-1, 1, values.shape[2])).squeeze(1)
