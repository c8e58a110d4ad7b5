"""CVaR DORO: the worst share of the rows, without the largest losses, which may be outliers."""

from __future__ import annotations

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor
from oodbench.kit import base_without_largest, without_largest, worst_share


class CvarDoro(LossMethod):
    """Distributional and outlier robust optimization with CVaR (Zhai et al. 2021).

    The floor(outliers n) largest losses are left out, or where rows have weights, the share `outliers` of these; then
    the mean of the largest alpha0 share of the rest.
    """

    uses = frozenset({"alpha0"})
    space = {
        "alpha0": LogUniform(0.01, 0.5, default=0.5),
        "outliers": LogUniform(0.005, 0.5, default=0.2),
    }

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        if rows.given_weights is not None:
            rest = base_without_largest(rows.losses, hp.outliers, rows.given_weights)
            return rows.risk(worst_share(rows.losses, hp.alpha0, rest))
        kept = without_largest(rows.losses, hp.outliers)
        share = hp.alpha0 * kept.double().mean(-1)  # of all rows
        return rows.risk(worst_share(rows.losses.masked_fill(~kept, float("-inf")), share.to(rows.losses.dtype)))
