"""Marginal DRO: the worst sub-population that is told apart by its features, not by its losses."""

from __future__ import annotations

from oodbench import Hparams, Integer, LogUniform, LossMethod, Rows, Tensor
from oodbench.kit import net_flow, smoothing_flows, worst_chi_square


class MarginalDro(LossMethod):
    """DRO over covariate shifts (Duchi, Hashimoto & Namkoong 2023), p = 2, with Euclidean distances D.

    min over eta and b >= 0 of [sqrt(mean (loss_i - sum_j (b_ij - b_ji) - eta)+^2) + radius sum b D / n] / alpha0 + eta.
    It costs the square of the rows, so each step takes `sample` of them. eta is exact; b comes from `flow_steps`
    projected gradient steps, so that the loss lies between this minimum and the one with b = 0, a chi-square DRO.
    """

    uses = frozenset({"alpha0"})
    takes_weights = False  # its flows between rows have no meaning for weights
    space = {
        "radius": LogUniform(0.1, 1e3, default=1.0),
        "alpha0": LogUniform(0.01, 0.5, default=0.1),
        "sample": Integer(2, 5000, default=100, searched=False),
        "flow_steps": Integer(0, 10_000, default=8, searched=False),
    }

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        from torch import cdist

        some = rows.sample(hp.sample)
        places = some.x.mT.contiguous()  # [trial, row, feature]
        costs = (hp.radius / hp.alpha0).view(-1, 1, 1) * cdist(places, places) / places.shape[1]
        share = hp.alpha0.square()  # sqrt(mean (.)+^2) / alpha0 + eta is the worst mean where n sum w^2 <= 1 / alpha0^2
        flows = smoothing_flows(some.losses, costs, share, hp.flow_steps)
        left = some.losses - net_flow(flows)
        objective: Tensor = (worst_chi_square(left, share) * left).sum(-1) + (costs * flows).sum((1, 2))
        return objective
