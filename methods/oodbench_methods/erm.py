"""Empirical risk minimization (Vapnik 1991): the mean loss of the training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oodbench import Hparams, LossMethod, Rows

if TYPE_CHECKING:
    from torch import Tensor


class ERM(LossMethod):
    """Empirical risk minimization (Vapnik 1991)."""

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        return rows.losses.mean(-1)
