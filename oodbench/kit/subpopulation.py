"""Sub-populations: weights over rows, on the simplex. The worst ones of a given size are found here.

What they are a part of are all rows alike, or `base` [trial, row], the rows with the weights that they have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


def worst_share(scores: Tensor, alpha0: Tensor, base: Tensor | None = None) -> Tensor:
    """The sub-population of share alpha0 [trial] with the largest mean score [trial, row].

    It solves max_w <w, scores> over the simplex with w <= 1 / (alpha0 n): the top alpha0 n rows, equally weighted.
    Rows that tie at the threshold share what is left of the weight. With a base, w <= base / alpha0.
    """
    scores = scores.detach()
    rows = scores.shape[-1]
    if base is not None:
        return _worst_share_of(base, scores, alpha0.clamp(max=1).unsqueeze(-1))
    size = (alpha0 * rows).clamp(1, rows).unsqueeze(-1)  # [trial, 1], not always whole
    whole = size.floor().long().clamp(max=rows - 1)
    threshold = _descending(scores, whole)
    above = (scores > threshold).to(scores.dtype) / size
    tied = (scores == threshold).to(scores.dtype)
    left = 1 - above.sum(-1, keepdim=True)
    return above + tied * (left / tied.sum(-1, keepdim=True).clamp(min=1))


def _worst_share_of(base: Tensor, scores: Tensor, share: Tensor) -> Tensor:
    """The rows with the largest scores that together have this share [trial, 1] of the base, which sums to one."""
    order = scores.argsort(dim=-1, descending=True, stable=True)
    reached = base.gather(-1, order).cumsum(-1)
    last = (reached < share * (1 - 1e-6)).sum(-1, keepdim=True).clamp(max=scores.shape[-1] - 1)
    threshold = scores.gather(-1, order.gather(-1, last))
    above = base * (scores > threshold) / share
    tied = base * (scores == threshold)
    left = (1 - above.sum(-1, keepdim=True)).clamp(min=0)
    return above + tied * (left / tied.sum(-1, keepdim=True).clamp(min=1e-30))


def worst_chi_square(
    scores: Tensor, alpha0: Tensor, halvings: int = 40, kept: Tensor | None = None, base: Tensor | None = None
) -> Tensor:
    """The sub-population with the largest mean score in a chi-square ball around the rows, or around those kept.

    The ball E_P[(dQ/dP)^2] <= 1 / alpha0 is the smallest that holds every sub-population of share alpha0. The
    maximizer has weights proportional to (score - eta)+. Where all rows keep weight, eta has a closed form;
    where some lose it, eta lies among the scores and is found by bisection. With a base, they are base (score - eta)+.
    """
    scores = scores.detach()
    rows: int | Tensor = scores.shape[-1]
    if base is not None:
        rows = 1
        mean = (base * scores).sum(-1, keepdim=True)
        std = (base * (scores - mean).square()).sum(-1, keepdim=True).sqrt()
        lowest = scores.masked_fill(base <= 0, float("inf")).amin(-1, keepdim=True)
        scores = scores.masked_fill(base <= 0, float("-inf"))
        highest = scores.amax(-1, keepdim=True)
    elif kept is None:
        mean, std = scores.mean(-1, keepdim=True), scores.std(-1, correction=0, keepdim=True)
        lowest, highest = scores.amin(-1, keepdim=True), scores.amax(-1, keepdim=True)
    else:
        rows = kept.sum(-1, keepdim=True)
        mean = (scores * kept).sum(-1, keepdim=True) / rows
        std = ((scores - mean).square() * kept).sum(-1, keepdim=True).div(rows).sqrt()
        lowest = scores.masked_fill(~kept, float("inf")).amin(-1, keepdim=True)
        scores = scores.masked_fill(~kept, float("-inf"))
        highest = scores.amax(-1, keepdim=True)
    bound = 1 / (alpha0.unsqueeze(-1).clamp(min=1 / rows) if base is None else alpha0.unsqueeze(-1))
    if_all_keep_weight = mean - std / (bound - 1).clamp(min=1e-10).sqrt()
    # a little below the scores, so that equal ones get equal weights rather than none
    little = 1e-6 * (1 + highest.abs())
    low, high = if_all_keep_weight.minimum(lowest) - little, highest - little
    for _ in range(halvings):
        eta = (low + high) / 2
        excess = (scores - eta).clamp(min=0)
        parts = excess if base is None else base * excess
        square = rows * (parts * excess).sum(-1, keepdim=True)
        inside = square <= bound * parts.sum(-1, keepdim=True).square()
        low, high = eta.where(inside, low), high.where(inside, eta)
    excess = (scores - low).clamp(min=0)
    parts = excess if base is None else base * excess
    return parts / parts.sum(-1, keepdim=True)


def chi_square_share(alpha0: Tensor) -> Tensor:
    """The share to give `worst_chi_square` for the ball of radius (1 / alpha0 - 1)^2, as DORO and others scale it."""
    return 1 / (1 + (1 / alpha0 - 1).square())


def worst_kl(scores: Tensor, radius: Tensor, halvings: int = 36, base: Tensor | None = None) -> Tensor:
    """The sub-population with the largest mean score whose KL divergence from the rows is at most radius [trial].

    Its weights are proportional to exp(score / lambda), times the base; lambda is found by bisection, for each trial
    its own.
    """
    scores = scores.detach()
    if base is None:
        std = scores.std(-1, correction=0, keepdim=True)
    else:
        mean = (base * scores).sum(-1, keepdim=True)
        std = (base * (scores - mean).square()).sum(-1, keepdim=True).sqrt()
    tilt = (scores - scores.amax(-1, keepdim=True)) / std.clamp(min=1e-30)
    low, high = (tilt.new_full((len(tilt), 1), end) for end in (-14.0, 14.0))  # of log(spread / lambda)
    for _ in range(halvings):
        middle = (low + high) / 2
        logits = tilt * middle.exp()
        parts = logits.exp() if base is None else base * scores.shape[-1] * logits.exp()
        total = parts.sum(-1, keepdim=True)
        divergence = (parts * logits).sum(-1, keepdim=True) / total - (total / scores.shape[-1]).log()
        inside = divergence <= radius.unsqueeze(-1)
        low, high = middle.where(inside, low), high.where(inside, middle)
    return (tilt * low.exp()).softmax(-1) if base is None else (tilt * low.exp() + base.log()).softmax(-1)


def without_largest(losses: Tensor, share: Tensor) -> Tensor:
    """Which rows are left without the floor(share n) largest losses: [trial, row]."""
    # a product such as 0.29 x 100 must not fall below the whole number that it is
    losses, rows = losses.detach(), losses.shape[-1]
    dropped = (share * rows * (1 + 1e-6)).floor().clamp(max=rows).unsqueeze(-1).long()
    last = _descending(losses, (dropped - 1).clamp(min=0))  # of the losses that are left out
    tied = losses == last
    left = dropped - (losses > last).sum(-1, keepdim=True)  # of the rows that tie, the first are left out
    return (losses < last) | (tied & (tied.cumsum(-1) > left)) | (dropped == 0)


def base_without_largest(losses: Tensor, share: Tensor, base: Tensor) -> Tensor:
    """The base [trial, row] without this share of it at the largest losses, summing to one again; the last row that is
    left out may be so in part."""
    order = losses.detach().argsort(dim=-1, descending=True, stable=True)
    own = base.gather(-1, order)
    left = own - (share.unsqueeze(-1) - (own.cumsum(-1) - own)).clamp(min=0).minimum(own)
    return left.scatter(-1, order, left) / left.sum(-1, keepdim=True)


def _descending(scores: Tensor, places: Tensor) -> Tensor:
    """The scores at `places` [trial, 1] in descending order, counted from 0.

    On a CPU numpy's partition does this nearly ten times faster than torch's topk. A GPU sorts all of them: for topk it
    would have to say first how many are needed.
    """
    if scores.is_cuda:
        return scores.sort(dim=-1, descending=True).values.gather(-1, places)
    values, ascending = scores.numpy(), (scores.shape[-1] - 1 - places).squeeze(-1).numpy()
    thresholds = np.empty_like(values[:, :1])
    for place in np.unique(ascending):
        alike = ascending == place
        thresholds[alike, 0] = np.partition(values[alike], place, axis=-1)[:, place]
    return scores.new_tensor(thresholds)
