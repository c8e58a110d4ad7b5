"""Clusters of rows by their mechanism: a cluster holds the rows that its own linear mechanism predicts best.

Everything is for the trials of a pack at once. A mechanism is a least squares on Gram matrices, in closed form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from oodbench.engine.coding import signed_targets
from oodbench.engine.products import multiply_by_seed
from oodbench.errors import InvalidSetting

if TYPE_CHECKING:
    from torch import Tensor

    from oodbench.engine.data import TrainingRows
    from oodbench.engine.trial import Trial
    from oodbench.settings.space import Value

RIDGE = 1e-9  # relative to the mean square of the features
MOST_ROUNDS = 30
LOOK = 10  # the round after which a GPU is asked, once, whether the search has ended: to ask is to wait for it
MOST_ROWS = 16_384  # that the mechanisms are fitted to; more choose among what these found
SETTLED = 0.1  # of a cluster's average size: fewer rows that move end the search, as in the authors' code


def check_clusters(hparams: Mapping[str, Value], train: TrainingRows) -> None:
    clusters = int(hparams["clusters"])
    if clusters > len(train):
        raise InvalidSetting(
            f"clusters={clusters} is more than the {len(train)} training rows.\nChoose fewer clusters."
        )


def stacked_targets(rows: TrainingRows, trials: int, device: Any = "cpu") -> Tensor:
    """What a least squares fits, the same for so many trials: values, or classes as -1 and +1. [trial, output, row]"""
    from torch import tensor

    return signed_targets(tensor(rows.y, device=device).unsqueeze(0), rows.classes).expand(trials, -1, -1)


def random_labels(trials: Sequence[Trial], rows: int, clusters: int, device: Any = "cpu") -> Tensor:
    """A random cluster for every row, to start from: [trial, row]."""
    from torch import Generator, randint, stack

    drawn = [randint(clusters, (rows,), generator=Generator().manual_seed(trial.entropy)) for trial in trials]
    return stack(drawn).to(device)


def cluster_mechanisms(
    features: Tensor, targets: Tensor, clusters: int, usable: Tensor, labels: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Cluster numbers [trial, row], alternating between the clusters' mechanisms and the rows' choice among them.

    features [seed, unit, row], targets [trial, output, row]; usable [trial, unit, unit] turns features into what
    the mechanisms may use of them; labels [trial, row] are where it starts. Rows may have weights [trial, row]. Of more
    than `MOST_ROWS` rows, the mechanisms are those of a part, always the same; then every row chooses.

    It runs on the device of the features; for a GPU it waits once.
    """
    from torch import Generator, cat, randperm

    from oodbench.engine.device import send

    features = cat([features, features.new_ones(len(features), 1, features.shape[2])], 1)
    usable = _keep_constant(usable)
    rows = labels.shape[-1]
    if rows <= MOST_ROWS:
        return _settle(features, targets, clusters, usable, labels, weights)
    part = send(randperm(rows, generator=Generator().manual_seed(rows))[:MOST_ROWS].sort().values, labels.device)
    few, their_targets = features[:, :, part], targets[:, :, part]
    their_weights = None if weights is None else weights[:, part] / weights[:, part].sum(-1, keepdim=True)
    settled = _settle(few, their_targets, clusters, usable, labels[:, part], their_weights)
    found = _mechanisms(few, their_targets, sub_populations(settled, clusters, their_weights), usable)
    return _choose(found, features, targets)


def _settle(
    features: Tensor, targets: Tensor, clusters: int, usable: Tensor, labels: Tensor, weights: Tensor | None
) -> Tensor:
    """The clusters from which few rows move."""
    settled = SETTLED * labels.shape[-1] / clusters
    moving = labels.new_ones(len(labels)) > 0
    for finished in range(1, MOST_ROUNDS + 1):
        mechanisms = _mechanisms(features, targets, sub_populations(labels, clusters, weights), usable)
        chosen = _choose(mechanisms, features, targets)
        moves = chosen != labels
        moved = moves.sum(-1) if weights is None else (weights * moves).sum(-1) * labels.shape[-1]
        labels = chosen.where(moving.unsqueeze(-1), labels)  # a trial that settled stays as it would have alone
        moving = moving & (moved > settled)
        if (finished == LOOK or not labels.is_cuda) and not moving.any():
            break
    return labels


def sub_populations(labels: Tensor, clusters: int, weights: Tensor | None = None) -> Tensor:
    """The clusters as weights [trial, cluster, row], each summing to one; one without rows stands for all rows.

    Rows may have weights [trial, row] themselves, summing to one.
    """
    from torch.nn.functional import one_hot

    members = one_hot(labels, clusters).transpose(1, 2).float()
    if weights is not None:
        members = members * weights.unsqueeze(1)
        sizes = members.sum(-1, keepdim=True)
        return (members / sizes.clamp(min=1e-30)).where(sizes > 0, weights.unsqueeze(1))
    sizes = members.sum(-1, keepdim=True)
    return (members / sizes.clamp(min=1)).masked_fill(sizes == 0, 1 / labels.shape[-1])


def contrasts_between(parts: Tensor) -> Tensor:
    """Of sub-populations [trial, k, row], k - 1 signed weights [trial, contrast, row], orthogonal to their mean.

    The squares of what is linear in the weights, summed over these, are its spread over the sub-populations.
    """
    return _helmert(parts.shape[1], parts.dtype, parts.device) @ parts


@cache
def _helmert(size: int, dtype: Any, device: Any) -> Tensor:
    """Made once: it is the same in every step."""
    from scipy.linalg import helmert
    from torch import tensor

    return tensor(helmert(size), dtype=dtype, device=device)


def moments(features: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Gram matrices [trial, k, unit, unit] and moments [trial, k, output, unit] under weights [trial, k, row].

    features [seed, unit, row] serve equally many trials each. One small product after the other: together the
    weighted features of all trials would leave the cache.
    """
    trials, k, _ = weights.shape
    repeats = trials // len(features)
    grams = features.new_empty(trials, k, features.shape[1], features.shape[1])
    crosses = features.new_empty(trials, k, targets.shape[1], features.shape[1])
    for trial in range(trials):
        x = features[trial // repeats]
        for part in range(k):
            weighted = x * weights[trial, part]
            gram = weighted @ x.T
            grams[trial, part] = (gram + gram.T) / 2  # rounding must not make it indefinite
            crosses[trial, part] = targets[trial] @ weighted.T
    return grams, crosses


def cluster_moments(
    features: Tensor, targets: Tensor, labels: Tensor, clusters: int, usable: Tensor
) -> tuple[Tensor, Tensor]:
    """The moments of each cluster, of what is usable of the features; arguments as for `cluster_mechanisms`."""
    return restrict_moments(*moments(features, targets, sub_populations(labels, clusters)), usable)


def restrict_moments(grams: Tensor, crosses: Tensor, usable: Tensor) -> tuple[Tensor, Tensor]:
    """The moments of what is usable of the features. Double: what is not usable must stay exactly so."""
    usable = usable.unsqueeze(1).double()
    return usable @ grams.double() @ usable, crosses.double() @ usable


def solve(grams: Tensor, crosses: Tensor) -> Tensor:
    """Least-squares coefficients [..., output, unit] in single precision; features that are always 0 get none."""
    from torch.linalg import cholesky_ex

    grams = grams.clone()
    diagonal = grams.diagonal(dim1=-2, dim2=-1)
    diagonal += RIDGE * diagonal.mean(-1, keepdim=True) + 1e-12
    factor = cholesky_ex(grams).L
    return crosses.mT.cholesky_solve(factor).mT.float()


def _mechanisms(features: Tensor, targets: Tensor, weights: Tensor, usable: Tensor) -> Tensor:
    """Coefficients [trial, k, output, unit] of the mechanisms fitted to the sub-populations [trial, k, row]."""
    grams, crosses = moments(features, targets, weights)
    return solve(*restrict_moments(grams, crosses, usable)) @ usable.unsqueeze(1)


def _choose(coefficients: Tensor, features: Tensor, targets: Tensor) -> Tensor:
    """The mechanism that predicts each row best: [trial, row]."""
    fitted = multiply_by_seed(coefficients, features).view(*coefficients.shape[:3], -1)
    residuals = fitted - targets.unsqueeze(1)
    return residuals.square().sum(2).argmin(1)


def _keep_constant(usable: Tensor) -> Tensor:
    padded = usable.new_zeros(len(usable), usable.shape[1] + 1, usable.shape[2] + 1)
    padded[:, :-1, :-1] = usable
    padded[:, -1, -1] = 1
    return padded
