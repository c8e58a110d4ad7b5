"""Heterogeneous risk minimization: cluster the rows by their mechanism in the features that are not invariant, select
the features that are invariant between the clusters, and again."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Hparams, Integer, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Value
from oodbench.kit import check_clusters, cluster_mechanisms, contrasts_between, sub_populations


def random_labels(rows: Rows, clusters: int) -> Tensor:
    return (rows.uniform(rows.y.shape[-1]) * clusters).long()


class HRM(LossMethod):
    """Heterogeneous risk minimization (Liu et al., ICML 2021).

    Differs from the authors' code: the clusters' mechanisms are least squares in closed form on the features as far
    as their gates are closed, not a weighted lasso; the gates continue from one round to the next rather than start
    again, and no steps without gates come first; the gated model itself predicts, not a least squares on the features
    above a threshold; the clusters' gradients depend on the gates, where theirs stop that derivative; and the sparsity
    is the sum of the gates, where theirs is the squared distance of the expected number of open ones from a given one.
    """

    gate_noise = 0.1
    uses = frozenset({"clusters"})
    space = {
        "penalty": LogUniform(1e-2, 1e3, default=10.0),
        "sparsity": LogUniform(1e-3, 1e0, default=0.05),
        "clusters": Integer(2, 100, default=2, searched=False),
        "explore_every": Integer(1, 100_000, default=100, searched=False),
    }

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_clusters(hparams, train)

    def explores_at(self, step: int, hp: Hparams) -> bool:
        return bool(step % hp.explore_every == 0)

    def explore(self, rows: Rows, hp: Hparams) -> Tensor:
        labels = rows.explored.argmax(1) if rows.is_explored else random_labels(rows, hp.clusters)
        usable = (1 - rows.gates).diag_embed()
        weights = rows.given_weights
        labels = cluster_mechanisms(rows.shared_x, rows.signed_targets(), hp.clusters, usable, labels, weights)
        return sub_populations(labels, hp.clusters, weights)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        features, clusters = rows.gates.shape[1], rows.explored
        # the spread of the clusters' gradients is the size of those of clusters - 1 contrasts between them
        contrasts = contrasts_between(clusters).unbind(1)
        gradients = [rows.first_layer_gradient(contrast)[:, :, :features] for contrast in contrasts]
        spread = sum(gradient.square().sum(1) for gradient in gradients)  # [trial, feature]
        invariance = (rows.gates * spread).sum(-1)
        risk = rows.risk(clusters.mean(1))
        objective: Tensor = risk + hp.penalty * invariance + hp.sparsity * rows.gates.sum(-1)
        return objective
