"""Kernelized heterogeneous risk minimization: cluster the rows by their mechanism in what is not invariant yet, learn
what is invariant between the clusters, and again; all of it linear in neural tangent features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from oodbench import (
    Integer,
    LogUniform,
    Method,
    Option,
    Predictor,
    Setup,
    Tensor,
    Trainer,
    TrainingRows,
    Trial,
    Value,
)
from oodbench.kit import (
    MOST_TRIALS,
    check_clusters,
    cluster_mechanisms,
    moments,
    restrict_moments,
    signed_targets,
    solve,
    sub_populations,
    training_entropy,
)

if TYPE_CHECKING:
    from oodbench.kit.tangent import TangentModel

LARGEST_RANK = 60
STEPS, LEARNING_RATE = 1000, 1e-2


class KerHRM(Method):
    """Kernelized heterogeneous risk minimization (Liu et al., NeurIPS 2021).

    Differs from the authors' code: clusters and, for `invariance=gradient`, the invariant predictor are least squares
    in closed form rather than thousands of gradient steps; the random network serves all configurations of a seed,
    its own output is left out, and its directions come from at most `basis` rows, so that large tables can be used.
    It has its own network, whatever the model family, and fits squared errors (classes as -1, +1).
    """

    uses = frozenset({"clusters"})
    space = {
        "rank": Integer(10, LARGEST_RANK, default=30),
        "penalty": LogUniform(1e-2, 1e1, default=0.1),
        "invariance": Option("auto", "gradient", "scale"),
        "clusters": Integer(2, 100, default=2, searched=False),
        "rounds": Integer(1, 100, default=5, searched=False),
        "width": Integer(1, 100_000, default=1024, searched=False),
        "basis": Integer(2, 20_000, default=2500, searched=False),
        "megabytes": Integer(1, 1_000_000, default=256, searched=False),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_clusters(hparams, train)

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        fitted: dict[int, TangentModel] = {}
        for seed in sorted({trial.seed for trial in trials}):
            positions = [position for position, trial in enumerate(trials) if trial.seed == seed]
            models = fit_seed(train[seed], [trials[position] for position in positions], trainer)
            fitted |= zip(positions, models, strict=True)
        return [fitted[position] for position in range(len(trials))]

    def pack_capacity(self, rows: int, outputs: int, setup: Setup) -> int:
        return MOST_TRIALS


def fit_seed(rows: TrainingRows, trials: Sequence[Trial], trainer: Trainer) -> list[TangentModel]:
    """The trials on one seed: they share its tangent features, of which each takes as many as its rank."""
    import torch

    from oodbench.kit.tangent import TangentBasis

    option = trials[0].hparams  # what is not searched is the same for all of them
    clusters, megabytes = int(option["clusters"]), int(option["megabytes"])
    rank, penalty = (torch.tensor([float(trial.hparams[name]) for trial in trials]) for name in ("rank", "penalty"))
    classification = rows.task == "classification"
    by_scale = option["invariance"] == "scale" or (option["invariance"] == "auto" and classification)
    learn_invariant = invariant_by_scale if by_scale else invariant_by_gradient

    x = torch.tensor(rows.x, dtype=torch.float32)
    targets = signed_targets(torch.tensor(rows.y).unsqueeze(0), rows.classes).expand(len(trials), -1, -1)
    entropy = training_entropy("tangent", 0, trials[0].seed)
    basis = TangentBasis.fit(x, int(option["width"]), LARGEST_RANK, int(option["basis"]), entropy)
    features = basis.project(x, megabytes).unsqueeze(0)  # [1, direction, row]

    within_rank = (torch.arange(features.shape[1]) < rank.unsqueeze(1)).float().diag_embed()
    usable = within_rank
    labels = torch.stack(
        [
            torch.randint(clusters, (len(rows),), generator=torch.Generator().manual_seed(trial.entropy))
            for trial in trials
        ]
    )
    for _ in range(int(option["rounds"])):
        labels = cluster_mechanisms(features, targets, clusters, usable, labels)
        of_clusters = moments(features, targets, sub_populations(labels, clusters))
        theta = learn_invariant(
            *restrict_moments(*of_clusters, within_rank), rank, penalty, trainer
        )  # [trial, output, direction]
        usable = within_rank - _span(theta)
    return [basis.model(coefficients, classification, megabytes) for coefficients in theta]


def invariant_by_gradient(grams: Tensor, crosses: Tensor, rank: Tensor, penalty: Tensor, trainer: Trainer) -> Tensor:
    """min mean risk of the clusters + penalty x spread of the risks' gradients by theta: a least squares.

    grams [trial, cluster, direction, direction], crosses [trial, cluster, output, direction]; theta [trial, output,
    direction]. For two clusters the spread is the mean squared difference of their gradients.
    """
    gram, cross = grams.mean(1), crosses.mean(1)
    gaps, cross_gaps = 2 * (grams - gram.unsqueeze(1)), 2 * (crosses - cross.unsqueeze(1))
    weight = (2 * penalty / rank).view(-1, 1, 1).double()
    return solve(gram + weight * (gaps @ gaps).sum(1), cross + weight * (cross_gaps @ gaps).sum(1))


def invariant_by_scale(grams: Tensor, crosses: Tensor, rank: Tensor, penalty: Tensor, trainer: Trainer) -> Tensor:
    """min mean risk of the clusters + penalty x spread of the risks' slopes as theta is scaled, by gradient steps.

    Shapes as for `invariant_by_gradient`. Steps are on Gram matrices: their cost does not depend on the rows.
    """
    import torch

    grams, crosses = grams.float(), crosses.float()
    theta = solve(grams.double().mean(1), crosses.double().mean(1)).requires_grad_()
    rate, decay = penalty.new_full(theta.shape[:1], LEARNING_RATE), penalty.new_zeros(theta.shape[:1])
    optimizer = trainer.optimizer("adam", theta, rate, decay)
    for _ in range(STEPS):
        size = (theta.unsqueeze(1) @ grams * theta.unsqueeze(1)).sum((2, 3))  # [trial, cluster]
        fit = (crosses * theta.unsqueeze(1)).sum((2, 3))
        slopes = 2 * (size - fit)
        spread = 2 * (slopes - slopes.mean(1, keepdim=True)).square().sum(1)
        (gradient,) = torch.autograd.grad(((size - 2 * fit).mean(1) + penalty * spread).sum(), theta)
        optimizer.step(gradient)
    return theta.detach()


def _span(theta: Tensor) -> Tensor:
    """The projection [trial, direction, direction] onto the directions of the outputs."""
    from torch.linalg import qr

    directions: Tensor = qr(theta.mT).Q
    return directions @ directions.mT
