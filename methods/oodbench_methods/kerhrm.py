"""Kernelized heterogeneous risk minimization: cluster the rows by their mechanism in what is not invariant yet, learn
what is invariant between the clusters, and again; all of it linear in neural tangent features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from oodbench import Hparams, Integer, LogUniform, Method, Option, Predictor, Trainer, TrainingRows, Trial, Value, kit

LARGEST_RANK = 60


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
    trials_per_task = kit.MOST_TRIALS
    on_gpu = True

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        kit.check_clusters(hparams, train)

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        return [*kit.fit_by_seed(self.space, train, trials, partial(fit_seed, trainer=trainer), trainer.device)]


def fit_seed(rows: TrainingRows, trials: Sequence[Trial], hp: Hparams, trainer: Trainer) -> list[kit.TangentModel]:
    """The trials on one seed: they share its tangent features, of which each takes as many as its rank."""
    device = trainer.device  # of all but the directions of the features and the finished models
    by_scale = hp.invariance == "scale" or (hp.invariance == "auto" and rows.task == "classification")
    learn_invariant = kit.invariant_by_scale if by_scale else kit.invariant_by_gradient
    basis, features = kit.tangent_features(rows, trials[0].seed, hp.width, LARGEST_RANK, hp.basis, hp.megabytes, device)
    targets = kit.stacked_targets(rows, len(trials), device)
    usable = within_rank = kit.leading_projection(hp.rank, features.shape[1])
    labels = kit.random_labels(trials, len(rows), hp.clusters, device)
    for _ in range(hp.rounds):
        labels = kit.cluster_mechanisms(features, targets, hp.clusters, usable, labels)
        of_clusters = kit.cluster_moments(features, targets, labels, hp.clusters, within_rank)
        theta = learn_invariant(*of_clusters, hp.rank, hp.penalty, trainer)  # [trial, output, direction]
        usable = within_rank - kit.span_projection(theta)
    basis, classification = basis.on_cpu(), rows.task == "classification"
    return [basis.model(coefficients, classification, hp.megabytes) for coefficients in theta.cpu()]
