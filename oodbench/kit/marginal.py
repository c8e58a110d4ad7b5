"""Worst sub-populations that depend on the features alone: rows that are close have similar weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oodbench.kit.subpopulation import worst_chi_square

if TYPE_CHECKING:
    from torch import Tensor

HALVINGS = 12  # for steps that are approximate anyway
STRIDE = 0.3  # of the spread of the losses: how far the first step moves them


def smoothing_flows(losses: Tensor, costs: Tensor, share: Tensor, steps: int) -> Tensor:
    """Flows b >= 0 [trial, row, row] of loss between rows that make the worst case smaller than their costs.

    A flow b_ij takes loss from row i to row j, at costs [trial, row, row]; what is left is judged by `worst_chi_square`
    with share [trial]. From b = 0, so many projected gradient steps of falling length. The best point on the way
    counts, so that the worst case is not larger than without flows, nor smaller than with the best ones.
    """
    losses = losses.detach()
    flows = best = costs.new_zeros(costs.shape)
    lowest = losses.new_full(losses.shape[:1], float("inf"))
    stride = STRIDE * losses.std(-1, correction=0) * losses.shape[-1] ** 0.5
    for step in range(steps + 1):
        left = losses - net_flow(flows)
        worst = worst_chi_square(left, share, HALVINGS)
        value = (worst * left).sum(-1) + (costs * flows).sum((1, 2))
        better = value < lowest
        lowest, best = value.where(better, lowest), flows.where(better.view(-1, 1, 1), best)
        gain = worst.unsqueeze(2) - worst.unsqueeze(1) - costs
        gain = gain * ((flows > 0) | (gain > 0))
        length = stride / (net_flow(gain).norm(dim=-1) + 1e-12) / (step + 1) ** 0.5
        flows = (flows + length.view(-1, 1, 1) * gain).clamp(min=0)
    return best


def net_flow(flows: Tensor) -> Tensor:
    """What leaves each row, less what arrives: [trial, row]."""
    return flows.sum(2) - flows.sum(1)
