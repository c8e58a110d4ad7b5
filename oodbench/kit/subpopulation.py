"""Sub-populations: weights over rows, on the simplex. The worst ones of a given size are found here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


def worst_share(scores: Tensor, alpha0: Tensor) -> Tensor:
    """The sub-population of share alpha0 [trial] with the largest mean score [trial, row].

    It solves max_w <w, scores> over the simplex with w <= 1 / (alpha0 n): the top alpha0 n rows, equally weighted.
    Rows that tie at the threshold share what is left of the weight.
    """
    scores = scores.detach()
    rows = scores.shape[-1]
    size = (alpha0 * rows).clamp(1, rows).unsqueeze(-1)  # [trial, 1], not always whole
    whole = size.floor().long().clamp(max=rows - 1)
    threshold = _descending(scores, whole)
    above = (scores > threshold).to(scores.dtype) / size
    tied = (scores == threshold).to(scores.dtype)
    left = 1 - above.sum(-1, keepdim=True)
    return above + tied * (left / tied.sum(-1, keepdim=True).clamp(min=1))


def worst_chi_square(scores: Tensor, alpha0: Tensor, halvings: int = 40) -> Tensor:
    """The sub-population with the largest mean score in a chi-square ball around the rows.

    The ball E_P[(dQ/dP)^2] <= 1 / alpha0 is the smallest that holds every sub-population of share alpha0. The
    maximizer has weights proportional to (score - eta)+. Where all rows keep weight, eta has a closed form;
    where some lose it, eta lies among the scores and is found by bisection.
    """
    scores = scores.detach()
    rows = scores.shape[-1]
    bound = 1 / alpha0.clamp(min=1 / rows).unsqueeze(-1)
    lowest, highest = scores.amin(-1, keepdim=True), scores.amax(-1, keepdim=True)
    mean, std = scores.mean(-1, keepdim=True), scores.std(-1, correction=0, keepdim=True)
    if_all_keep_weight = mean - std / (bound - 1).clamp(min=1e-10).sqrt()
    # a little below the scores, so that equal ones get equal weights rather than none
    little = 1e-6 * (1 + highest.abs())
    low, high = if_all_keep_weight.minimum(lowest) - little, highest - little
    for _ in range(halvings):
        eta = (low + high) / 2
        excess = (scores - eta).clamp(min=0)
        square = rows * excess.square().sum(-1, keepdim=True)
        inside = square <= bound * excess.sum(-1, keepdim=True).square()
        low, high = eta.where(inside, low), high.where(inside, eta)
    excess = (scores - low).clamp(min=0)
    return excess / excess.sum(-1, keepdim=True)


def _descending(scores: Tensor, places: Tensor) -> Tensor:
    """The scores at `places` [trial, 1] in descending order, counted from 0.

    On a CPU numpy's partition does this nearly ten times faster than torch's topk.
    """
    if scores.is_cuda:
        return scores.topk(int(places.max()) + 1, dim=-1).values.gather(-1, places)
    values, ascending = scores.numpy(), (scores.shape[-1] - 1 - places).squeeze(-1).numpy()
    thresholds = np.empty_like(values[:, :1])
    for place in np.unique(ascending):
        alike = ascending == place
        thresholds[alike, 0] = np.partition(values[alike], place, axis=-1)[:, place]
    return scores.new_tensor(thresholds)
