"""Group DRO: the risk of the worst environment, through weights that follow the risks."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Value
from oodbench.kit import check_environments


class GroupDRO(LossMethod):
    """Group distributionally robust optimization (Sagawa et al. 2020): the weight of an environment grows with its risk
    and is kept from step to step."""

    needs = frozenset({"environments"})
    space = {"rate": LogUniform(1e-3, 1e-1, default=1e-2)}

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def start(self, rows: Rows, hp: Hparams) -> dict[str, Tensor]:
        return {"log_q": rows.losses.new_zeros(rows.environments.shape[:2])}  # not q, which would underflow to 0

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        risks = rows.risk(rows.environments)  # [trial, environment]
        log_q: Tensor = (rows.state.log_q + hp.rate.unsqueeze(-1) * risks.detach()).log_softmax(-1)
        rows.state.log_q = log_q
        return (log_q.exp() * risks).sum(-1)
