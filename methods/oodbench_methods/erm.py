"""Empirical risk minimization (Vapnik 1991): the mean loss of the training rows."""

from __future__ import annotations

from oodbench import Hparams, LossMethod, Rows, Tensor


class ERM(LossMethod):
    """Empirical risk minimization (Vapnik 1991)."""

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        return rows.risk()
