"""Chi-square DORO: the worst mean in a chi-square ball, without the largest losses, which may be outliers."""

from __future__ import annotations

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor
from oodbench.kit import base_without_largest, chi_square_share, without_largest, worst_chi_square


class Chi2Doro(LossMethod):
    """Distributional and outlier robust optimization with the chi-square divergence (Zhai et al. 2021).

    The floor(outliers n) largest losses are left out, or where rows have weights, the share `outliers` of these; the
    rest is as in `chi2_dro`.
    """

    uses = frozenset({"alpha0"})
    space = {
        "alpha0": LogUniform(0.01, 0.5, default=0.5),
        "outliers": LogUniform(0.005, 0.5, default=0.2),
    }

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        share, weights = chi_square_share(hp.alpha0), rows.given_weights
        if weights is not None:
            rest = base_without_largest(rows.losses, hp.outliers, weights)
            return rows.risk(worst_chi_square(rows.losses, share, base=rest))
        return rows.risk(worst_chi_square(rows.losses, share, kept=without_largest(rows.losses, hp.outliers)))
