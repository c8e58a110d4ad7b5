"""Invariant risk minimization: a predictor that is optimal in every environment at once."""

from __future__ import annotations

from collections.abc import Callable

from oodbench import Choice, Hparams, LogUniform, LossMethod, Option, Rows, Tensor

RISKS: dict[str, Callable[[Rows], Tensor]] = {
    "pooled": lambda rows: rows.risk(),
    "averaged": lambda rows: rows.risk(rows.environments).mean(-1),
}


class IRM(LossMethod):
    """Invariant risk minimization, IRMv1 (Arjovsky et al. 2019).

    `risk=averaged` is the paper's mean over environments; `pooled`, the default, is the mean over all rows, which
    is what reproduces the figures Liu et al. (2024) publish for it. The penalty starts after `anneal` steps.
    """

    needs = frozenset({"environments"})
    space = {
        "penalty": LogUniform(1e-1, 1e2, default=10.0),
        "anneal": Choice(0, 100, 500),
        "risk": Option("pooled", "averaged"),
    }

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        slopes = rows.scale_gradient(rows.environments)  # [trial, environment]: d risk / d scale, at scale 1
        penalty: Tensor = hp.penalty * (hp.anneal <= rows.step)
        return RISKS[hp.risk](rows) + penalty * slopes.square().mean(-1)
