"""Mixup: train on convex combinations of pairs of rows."""

from __future__ import annotations

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor
from oodbench.kit import mixed_losses


class Mixup(LossMethod):
    """Mixup (Zhang et al. 2018), between any two rows, whatever their environment.

    Every pair has a share of its own from Beta(alpha, alpha), since one step sees many rows. Columns that are 0 or 1
    become fractions.
    """

    takes_weights = False  # pairs are drawn alike
    space = {"alpha": LogUniform(1e-1, 1e1, default=0.2)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        share = rows.beta(hp.alpha, rows.y.shape[-1])
        return (rows.weights * mixed_losses(rows, rows.permutation(), share)).sum(-1)
