"""Fishr: the rows' gradients vary equally in all environments."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Uniform, Value
from oodbench.kit import check_environments, last_layer_variances


class Fishr(LossMethod):
    """Fishr (Rame et al. 2022): a penalty on differences of the variances of gradients by the last layer.

    The variances are moving averages with memory `ema`, from those of the first step. The penalty starts after the
    share `burn_in` of the steps; the authors give a number of steps.
    """

    needs = frozenset({"environments"})
    space = {
        "penalty": LogUniform(1e1, 1e4, default=1e3),
        "ema": Uniform(0.9, 0.99, default=0.95),
        "burn_in": Uniform(0.0, 0.9, default=0.3),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def start(self, rows: Rows, hp: Hparams) -> Mapping[str, Tensor]:
        return {"variances": last_layer_variances(rows, rows.environments)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        memory = hp.ema.view(-1, 1, 1)
        variances = memory * rows.state.variances + (1 - memory) * last_layer_variances(rows, rows.environments)
        rows.state.variances = variances
        gaps = (variances - variances.mean(1, keepdim=True)).square().sum(-1).mean(-1)
        penalty: Tensor = hp.penalty * (hp.burn_in * rows.recipe.steps <= rows.step) * gaps
        return rows.risk(rows.environments).mean(-1) + penalty
