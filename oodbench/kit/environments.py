"""What methods that compare environments are made of. One without rows in a step counts for nothing there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oodbench.engine.products import multiply
from oodbench.errors import InvalidSetting

if TYPE_CHECKING:
    from torch import Tensor

    from oodbench.engine.data import TrainingRows
    from oodbench.engine.rows import Rows

SMALLEST = 1e-6  # of 1 - sum of squared weights: a single row has no variance
SMALLEST_EXPONENT = -87.0  # of a number in single precision that has all its digits


def check_environments(train: TrainingRows) -> None:
    """Refuse training rows of fewer than two environments."""
    count = 0 if train.environment is None else len(np.unique(train.environment))
    if count < 2:
        raise InvalidSetting(
            f"the method compares training environments, and there is {'one' if count else 'none'}.\n"
            "Train on several (for a table: --set train=a,b), or choose a method that needs none."
        )


def equal_shares(rows: Rows) -> Tensor:
    """Equal weights [trial, environment] of the environments that have rows in this step, summing to one."""
    present = rows.environments.sum(-1)
    return present / present.sum(-1, keepdim=True)


def mean_risk(rows: Rows) -> Tensor:
    """The mean [trial] of the environments' risks, however many rows each has."""
    return (equal_shares(rows) * rows.risk(rows.environments)).sum(-1)


def annealed(penalty: Tensor, anneal: Tensor, step: int, before: float = 1.0) -> Tensor:
    """A penalty's weight [trial] at a step: `before`, and after `anneal` steps its own."""
    return penalty.masked_fill(anneal > step, before)


def squared_means(values: Tensor, rows: Rows) -> Tensor:
    """The squared mean of values [trial, k, row] in every environment: [trial, k, environment].

    From a batch it is estimated without bias, as the mean product of two different rows. That is the mean, over all
    ways to cut the environment's rows in halves, of the product of the halves' means; the square of the batch's own
    mean would be too large by its variance.
    """
    weights = rows.environments.transpose(1, 2)  # [trial, row, environment]
    squares = multiply(values, weights).square()
    if not rows.is_part:
        return squares
    own = multiply(values.square(), weights.square())
    return (squares - own) / (1 - weights.square().sum(1, keepdim=True)).clamp(min=SMALLEST)


def scale_penalty(rows: Rows) -> Tensor:
    """IRMv1's penalty [trial]: the environments' mean squared slope of the risk as the outputs are scaled."""
    slopes = rows.recipe.row_slopes(rows.outputs, rows.y).unsqueeze(1)  # [trial, 1, row]
    return (equal_shares(rows) * squared_means(slopes, rows).squeeze(1)).sum(-1)


def convex_irm(rows: Rows, odds: Tensor) -> Tensor:
    """IRMv1 [trial] as Aubin et al. (2021) have it: (1 - share) risk + share penalty, share = odds / (1 + odds).

    Their penalty is summed over environments and is also that of a shift: the squared slopes of the risk as the outputs
    are scaled, and as a constant is added to them.
    """
    from torch import cat

    shifts = rows.output_slopes
    slopes = (shifts * rows.outputs).sum(1, keepdim=True)  # [trial, 1, row]
    both = cat([slopes, shifts if shifts.shape[1] == 1 else shifts[:, 1:]], 1)
    share = odds / (1 + odds)
    return (1 - share) * mean_risk(rows) + share * squared_means(both, rows).sum((1, 2))


def logit_variance(rows: Rows, weights: Tensor) -> Tensor:
    """The variance [trial] of the outputs, of classes relative to the first, mean over sub-populations."""
    from oodbench.kit.moments import Variances

    logits = rows.outputs if rows.outputs.shape[1] == 1 else rows.outputs[:, 1:] - rows.outputs[:, :1]
    squares: Tensor = Variances.apply(logits, weights)  # type: ignore[no-untyped-call]
    return (squares.mean(-1) / _free(weights)).mean(-1)


def variances(values: Tensor, weights: Tensor) -> Tensor:
    """Unbiased variances [trial, k, unit] of values [trial, unit, row] under weights [trial, k, row]."""
    from torch import stack

    each = [multiply(_centred(values, part).square(), part.unsqueeze(-1)) for part in weights.unbind(1)]
    return stack(each, 1).squeeze(-1) / _free(weights).unsqueeze(-1)


def covariances(values: Tensor, weights: Tensor) -> Tensor:
    """Unbiased covariances [trial, k, unit, unit] of values [trial, unit, row] under weights [trial, k, row]."""
    from oodbench.kit.moments import Covariances

    mean_products: Tensor = Covariances.apply(values, weights)  # type: ignore[no-untyped-call]
    return mean_products / _free(weights).view(*weights.shape[:2], 1, 1)


def bottleneck(rows: Rows) -> Tensor:
    """The mean variance [trial] of what the model learned to see, within environments."""
    from oodbench.kit.moments import Variances

    squares: Tensor = Variances.apply(rows.learned, rows.environments)  # type: ignore[no-untyped-call]
    spread = squares.mean(-1) / _free(rows.environments)
    return (equal_shares(rows) * spread).sum(-1)


def mean_over_pairs(gaps: Tensor, shares: Tensor) -> Tensor:
    """The mean [trial] of gaps [trial, k, k] between two different environments of shares [trial, k]."""
    from torch import eye

    pairs = shares.unsqueeze(1) * shares.unsqueeze(2) * (1 - eye(shares.shape[1], device=shares.device))
    return (gaps * pairs).sum((1, 2)) / pairs.sum((1, 2)).clamp(min=SMALLEST)


def mean_kernels(values: Tensor, rows: Rows, precisions: tuple[float, ...]) -> Tensor:
    """The mean of sum exp(-precision |a - b|^2) for a row each of two environments: [trial, environment, environment].

    values [trial, unit, row]. Of one environment and a part of the training rows, the mean is over different rows: with
    a row and itself it would be too large, and small environments would seem far from all others.
    """
    weights = rows.environments
    kernel = gaussian_kernel(values, precisions)
    means = multiply(multiply(weights, kernel), weights.mT)
    if not rows.is_part:
        return means
    own, squares = means.diagonal(dim1=1, dim2=2), weights.square().sum(-1)
    different = (own - len(precisions) * squares) / _free(weights)
    return means + (different - own).masked_fill(~(1 - squares > SMALLEST), 0.0).diag_embed()


def gaussian_kernel(values: Tensor, precisions: tuple[float, ...]) -> Tensor:
    """sum of exp(-precision |a - b|^2) of all pairs of rows of values [trial, unit, row]: [trial, row, row]."""
    centred = values - values.mean(-1, keepdim=True)
    sizes = centred.square().sum(1)
    distances = (sizes.unsqueeze(1) + sizes.unsqueeze(2) - 2 * multiply(centred.mT, centred)).clamp(min=0)
    # results that single precision cannot hold take the exponential ten times as long, and add nothing
    each = [(-precision * distances).clamp(min=SMALLEST_EXPONENT).exp() for precision in precisions]
    kernel = each[0]
    for part in each[1:]:
        kernel = kernel + part
    return kernel


def _centred(values: Tensor, weights: Tensor) -> Tensor:
    return values - multiply(values, weights.unsqueeze(-1))


def _free(weights: Tensor) -> Tensor:
    """1 - 1/n for n equal weights: what an unbiased variance is divided by."""
    return (1 - weights.square().sum(-1)).clamp(min=SMALLEST)
