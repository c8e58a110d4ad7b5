"""KL DRO: the worst mean loss in a Kullback-Leibler ball around the training rows."""

from __future__ import annotations

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor
from oodbench.kit import worst_kl


class KlDro(LossMethod):
    """Kullback-Leibler DRO (Hu & Hong 2013).

    min over lambda of lambda log mean exp(loss / lambda) + lambda radius, as the mean under the worst weights, which
    is equal. lambda is solved for in every step: with a fixed one, the radius would shrink with the losses.
    """

    space = {"radius": LogUniform(1e-3, 1e0, default=0.1)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        return rows.risk(worst_kl(rows.losses, hp.radius, base=rows.given_weights))
