"""The information bottleneck beside the risk: a representation that varies little within environments."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Choice, Hparams, LogUniform, LossMethod, Option, Preset, Rows, Tensor, TrainingRows, Value
from oodbench.kit import annealed, bottleneck, check_environments, logit_variance, mean_risk


class IBERM(LossMethod):
    """Information-bottleneck ERM (Ahuja et al. 2021): the mean risk, and the mean variance of what the last layer sees
    within environments (of a linear model's outputs), from `anneal` steps on. `form=unit_tests` is that of their linear
    experiment: the risk and the variance of the logit, both of all rows."""

    needs = frozenset({"environments"})
    space = {
        "bottleneck": LogUniform(1e-1, 1e5, default=100.0),
        "anneal": Choice(0, 100, 500, default=100),
        "form": Option("usual", "unit_tests"),
    }
    presets = {"unit_tests": Preset("the form of the authors' linear experiment", fix={"form": "unit_tests"})}

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        weight = annealed(hp.bottleneck, hp.anneal, rows.step, before=0.0)
        if hp.form == "unit_tests":
            return rows.risk() + weight * logit_variance(rows, rows.weights.unsqueeze(1))
        return mean_risk(rows) + weight * bottleneck(rows)
