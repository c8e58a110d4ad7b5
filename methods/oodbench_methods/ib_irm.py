"""The information bottleneck beside IRM's penalty."""

from __future__ import annotations

from oodbench import Hparams, LogUniform, Rows, Tensor
from oodbench.kit import annealed, convex_irm, logit_variance, scale_penalty
from oodbench_methods.ib_erm import IBERM


class IBIRM(IBERM):
    """Information-bottleneck IRM (Ahuja et al. 2021): IB-ERM and IRM's penalty, which has weight 1 before
    `anneal` steps. `form=unit_tests` is that of their linear experiment: IRM in the form of the same name, and the
    variance of the logit within environments."""

    space = {**IBERM.space, "penalty": LogUniform(1e-1, 1e5, default=100.0)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        weight = annealed(hp.penalty, hp.anneal, rows.step)
        if hp.form == "unit_tests":
            narrowness = annealed(hp.bottleneck, hp.anneal, rows.step, before=0.0)
            return convex_irm(rows, weight) + narrowness * logit_variance(rows, rows.environments)
        return super().loss(rows, hp) + weight * scale_penalty(rows)
