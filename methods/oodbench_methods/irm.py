"""Invariant risk minimization: a predictor that is optimal in every environment at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oodbench import Choice, Hparams, LogUniform, LossMethod, Option, Preset, Rows, Tensor, TrainingRows, Value
from oodbench.kit import annealed, check_environments, convex_irm, mean_risk, scale_penalty

RISKS: dict[str, Callable[[Rows], Tensor]] = {"averaged": mean_risk, "pooled": lambda rows: rows.risk()}


class IRM(LossMethod):
    """Invariant risk minimization, IRMv1 (Arjovsky et al. 2019).

    `risk=averaged` is the mean over environments, as in the authors' code; `pooled` is the mean over all rows. The
    penalty has weight 1 before `anneal` steps. In batches it is estimated without bias, by products of different rows,
    which is what the product of two half-batches' slopes is on average. Differs from DomainBed: the optimizer goes on
    after `anneal` steps as it was. `form=unit_tests` is that of Aubin et al. (2021): risk and penalty have weights that
    sum to one, in the ratio `penalty`; the penalty is summed over environments, and is also that of a shift of outputs.
    """

    needs = frozenset({"environments"})
    space = {
        "penalty": LogUniform(1e-1, 1e5, default=100.0),
        "anneal": Choice(0, 100, 500, default=100),
        "risk": Option(*RISKS),
        "form": Option("usual", "unit_tests"),
    }
    presets = {
        "pooled": Preset("the risk of all rows, as Liu et al. (2024) compare with", fix={"risk": "pooled"}),
        "unit_tests": Preset("the form of Aubin et al. (2021)", fix={"form": "unit_tests"}),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        weight = annealed(hp.penalty, hp.anneal, rows.step)
        if hp.form == "unit_tests":
            return convex_irm(rows, weight)
        return RISKS[hp.risk](rows) + weight * scale_penalty(rows)
