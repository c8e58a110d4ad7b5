"""Selective interpolation: mix rows of one class across environments, or rows of one environment across classes."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Uniform, Value
from oodbench.kit import check_environments, draw_partners, mixed_losses


class LISA(LossMethod):
    """Learning invariant predictors with selective augmentation (Yao et al. 2022), for classes.

    With probability `same_class` a row is mixed with one of its class from another environment, else with one of its
    environment from another class. Each row draws for itself; one that has no such partner stays as it is.
    """

    needs = frozenset({"environments"})
    tasks = ("classification",)
    takes_weights = False  # pairs are drawn alike
    space = {
        "alpha": LogUniform(1e-1, 1e1, default=2.0),
        "same_class": Uniform(0.0, 1.0, default=0.5),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        size = rows.y.shape[-1]
        choice, chance, share = rows.uniform(size), rows.uniform(size), rows.beta(hp.alpha, size)
        labels = max(rows.classes, rows.environments.shape[1])
        across_environments = draw_partners(chance, rows.y, rows.environment, labels)
        across_classes = draw_partners(chance, rows.environment, rows.y, labels)
        partners = across_environments.where(choice < hp.same_class.unsqueeze(-1), across_classes)
        return (rows.weights * mixed_losses(rows, partners, share)).sum(-1)
