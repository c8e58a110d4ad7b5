from __future__ import annotations

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor


class RiskSpread(LossMethod):
    """The environments' risks and their standard deviation."""

    needs = {"environments"}
    space = {"penalty": LogUniform(1e-1, 1e3, default=10.0)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        risks = rows.risk(rows.environments)  # [trial, environment]
        return risks.mean(-1) + hp.penalty * risks.std(-1, correction=0)
