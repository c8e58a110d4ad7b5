from __future__ import annotations

from typing import TYPE_CHECKING

from oodbench import Hparams, LogUniform, LossMethod, Rows

if TYPE_CHECKING:
    from torch import Tensor


class VREx(LossMethod):
    """Risk extrapolation, V-REx (Krueger et al. 2021)."""

    needs = {"environments"}
    space = {"penalty": LogUniform(1e-1, 1e3, default=10.0)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        risks = rows.risk(rows.environments)  # [trial, environment]
        return risks.mean(-1) + hp.penalty * risks.var(-1, correction=0)
