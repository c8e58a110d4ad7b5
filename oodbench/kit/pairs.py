"""Rows mixed with partners: convex combinations of two rows each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from oodbench.engine.rows import Rows


def mixed_losses(rows: Rows, partners: Tensor, share: Tensor) -> Tensor:
    """Losses [trial, row] at share x + (1 - share) x', for both targets in the same proportion.

    partners [trial, row] are places of rows, share [trial, row] is what each row keeps of itself. For a squared loss
    this is the loss for the mixed target, up to a constant.
    """
    keep, y = share.unsqueeze(1), rows.y.gather(1, partners)
    if rows.learns_representation:
        mixed = rows.forward(keep * rows.x + (1 - keep) * rows.x_at(partners))
    else:  # the outputs of a linear model mix as its inputs do
        others = rows.outputs.gather(2, partners.unsqueeze(1).expand_as(rows.outputs))
        mixed = rows.with_outputs(keep * rows.outputs + (1 - keep) * others)
    return share * mixed.losses + (1 - share) * mixed.losses_for(y)


def draw_partners(chance: Tensor, same: Tensor, other: Tensor, labels: int | None = None) -> Tensor:
    """For each row the place of one that is equal in `same` and differs in `other`; itself, where there is none.

    All are labels or numbers in [0, 1) [trial, row]; each candidate is equally likely. Labels are below `labels`;
    without it, the largest is looked up, which waits for a GPU.
    """
    from torch import arange

    if labels is None:
        labels = int(same.maximum(other).max()) + 1
    if same.stride(0) == other.stride(0) == 0:  # all trials have the same rows
        same, other = same[:1], other[:1]
    group = same * labels + other
    order = group.argsort(dim=-1, stable=True)  # rows with one `same` side by side, and in there those with one `other`
    sizes = group.new_zeros(len(group), labels * labels)
    sizes = sizes.scatter_add(1, group, group.new_ones(group.shape))
    starts = sizes.cumsum(-1) - sizes
    own, own_start = sizes.gather(1, group), starts.gather(1, group)
    block, block_start = sizes.view(len(sizes), -1, labels).sum(-1).gather(1, same), starts.gather(1, same * labels)
    candidates = block - own
    place = block_start + (chance * candidates).long().minimum(candidates - 1)
    place = place + own * (place >= own_start)  # past the rows that do not differ
    drawn = order.expand_as(place).gather(1, place.clamp(0, group.shape[1] - 1))
    return drawn.where(candidates > 0, arange(group.shape[1], device=group.device))
