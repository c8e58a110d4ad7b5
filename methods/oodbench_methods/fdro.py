"""Distributionally robust optimization: the mean loss of the worst sub-population."""

from __future__ import annotations

from collections.abc import Callable

from oodbench import Hparams, LogUniform, LossMethod, Option, Rows, Tensor
from oodbench.kit import worst_chi_square, worst_share

WORST: dict[str, Callable[..., Tensor]] = {"cvar": worst_share, "chi_square": worst_chi_square}


class FDRO(LossMethod):
    """f-divergence DRO (Duchi & Namkoong 2021; CVaR: Rockafellar & Uryasev 2000).

    `cvar` is the mean of the largest alpha0 share of losses; `chi_square` the worst mean in the smallest
    chi-square ball that holds every sub-population of that share.
    """

    uses = frozenset({"alpha0"})
    space = {
        "alpha0": LogUniform(0.01, 0.5, default=0.1),
        "divergence": Option("cvar", "chi_square"),
    }

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        worst = WORST[hp.divergence](rows.losses, hp.alpha0, base=rows.given_weights)  # [trial, row]
        return rows.risk(worst)
