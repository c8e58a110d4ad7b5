"""Chi-square DRO: the worst mean loss in a chi-square ball around the training rows."""

from __future__ import annotations

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor
from oodbench.kit import chi_square_share, worst_chi_square


class Chi2Dro(LossMethod):
    """Chi-square DRO (Hashimoto et al. 2018; Duchi & Namkoong 2021) with the radius (1 / alpha0 - 1)^2.

    min over eta of C sqrt(mean (loss - eta)+^2) + eta, C = sqrt(1 + (1 / alpha0 - 1)^2), as the mean under the worst
    weights, which is equal. `fdro` with divergence=chi_square has the smaller radius 1 / alpha0 - 1.
    """

    uses = frozenset({"alpha0"})
    space = {"alpha0": LogUniform(0.01, 0.5, default=0.1)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        return rows.risk(worst_chi_square(rows.losses, chi_square_share(hp.alpha0), base=rows.given_weights))
