"""Domain-adversarial training: a representation from which a discriminator cannot tell the environment."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import (
    Hparams,
    Integer,
    LogUniform,
    LossMethod,
    Mlp,
    Network,
    Rows,
    Shape,
    Tensor,
    TrainingRows,
    Value,
)
from oodbench.kit import check_environments, reverse_gradient


class DANN(LossMethod):
    """Domain-adversarial neural networks (Ganin et al. 2016).

    One step trains the model against the discriminator and the discriminator itself, by reversing the gradient between
    them, as in the authors' algorithm. The environments count equally. A linear model is judged by its outputs.
    """

    needs = frozenset({"environments"})
    space = {
        "penalty": LogUniform(1e-2, 1e2, default=1.0),
        "width": Integer(1, 4096, default=64, searched=False),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def networks(self, shape: Shape, hp: Hparams) -> Mapping[str, Network]:
        return {"discriminator": Network(Mlp(width=(hp.width,)), shape.units, shape.environments)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        guesses = rows.network("discriminator", reverse_gradient(rows.learned))  # [trial, environment, row]
        surprise = -guesses.log_softmax(1).gather(1, rows.environment.unsqueeze(1)).squeeze(1)
        everyone = rows.environments.mean(1)
        penalty: Tensor = hp.penalty * (surprise * everyone).sum(-1)
        return rows.risk(everyone) + penalty
