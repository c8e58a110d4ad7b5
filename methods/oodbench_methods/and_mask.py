"""AND-mask: step only where the environments agree on the sign of the gradient."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Hparams, LossMethod, Option, Preset, Rows, Tensor, TrainingRows, Uniform, Value
from oodbench.kit import check_environments, environment_gradients, masked_mean, sign_agreement, unit_first_layer


class AndMask(LossMethod):
    """AND-mask (Parascandolo et al. 2021). An agreement of exactly `threshold` passes: 1 asks all to agree.

    `form=unit_tests` is that of Aubin et al. (2021): the gradients of each environment by the weights have length one,
    and what passes is not scaled up.
    """

    needs = frozenset({"environments"})
    space = {"threshold": Uniform(0.5, 1.0, default=1.0), "form": Option("usual", "unit_tests")}
    presets = {
        "unit_tests": Preset("the form of Aubin et al. (2021)", fix={"form": "unit_tests"}, recipe={"optimizer": "gd"})
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def direction(self, rows: Rows, hp: Hparams) -> Tensor:
        gradients = environment_gradients(rows)  # [trial, environment, parameter]
        passes = sign_agreement(gradients) >= hp.threshold.unsqueeze(-1)
        if hp.form == "unit_tests":
            step: Tensor = unit_first_layer(gradients, rows).mean(1) * passes
            return step
        return masked_mean(gradients, passes.to(gradients.dtype))
