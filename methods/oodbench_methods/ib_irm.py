"""The information bottleneck beside IRM's penalty."""

from __future__ import annotations

from oodbench import Hparams, LogUniform, Rows, Tensor
from oodbench.kit import annealed, scale_penalty
from oodbench_methods.ib_erm import IBERM


class IBIRM(IBERM):
    """Information-bottleneck IRM (Ahuja et al. 2021): IB-ERM and IRM's penalty, which has weight 1 before
    `anneal` steps."""

    space = {**IBERM.space, "penalty": LogUniform(1e-1, 1e5, default=100.0)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        return super().loss(rows, hp) + annealed(hp.penalty, hp.anneal, rows.step) * scale_penalty(rows)
