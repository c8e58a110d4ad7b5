"""SAND-mask: a smooth AND-mask that also wants gradients of similar size."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Uniform, Value
from oodbench.kit import check_environments, environment_gradients, masked_mean, sign_agreement


class SandMask(LossMethod):
    """SAND-mask (Shahtalebi et al. 2021), with the population variance of the gradients over environments.

    The usual default of `threshold`, 1, lets nothing pass: here it is 0.5. Gradients that are all equal have no
    variance; the mask is then 1 above the threshold and 0 at it.
    """

    needs = frozenset({"environments"})
    space = {
        "threshold": Uniform(0.0, 1.0, default=0.5),
        "steepness": LogUniform(1e-3, 1e5, default=10.0),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def direction(self, rows: Rows, hp: Hparams) -> Tensor:
        gradients = environment_gradients(rows)  # [trial, environment, parameter]
        slope = hp.steepness.unsqueeze(-1) / gradients.var(1, correction=0).clamp(min=1e-20)
        mask = (slope * (sign_agreement(gradients) - hp.threshold.unsqueeze(-1))).tanh().clamp(min=0)
        return masked_mean(gradients, mask)
