"""Clusters of mechanisms where they are known, and their pieces against other solvers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oodbench.kit import clustering
from oodbench.kit.clustering import cluster_mechanisms, moments, restrict_moments, solve, sub_populations


def two_mechanisms(rows: int = 600, share: float = 0.3, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """features [1, 2, row], targets [1, 1, row]: y = 3 x for some rows and -3 x for the others, x the first feature."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    second = np.arange(rows) < share * rows
    y = np.where(second, -3, 3) * x[:, 0] + 0.1 * rng.normal(size=rows)
    as_tensor = torch.tensor(x.T, dtype=torch.float32).unsqueeze(0)
    return as_tensor, torch.tensor(y, dtype=torch.float32).view(1, 1, -1), second


def random_labels(trials: int, rows: int, clusters: int = 2) -> torch.Tensor:
    return torch.randint(clusters, (trials, rows), generator=torch.Generator().manual_seed(1))


def agreement(labels: torch.Tensor, truth: np.ndarray) -> float:
    same = float(np.mean(labels.numpy() == truth))
    return max(same, 1 - same)


def test_planted_mechanisms_are_found() -> None:
    features, targets, second = two_mechanisms()
    clear = np.abs(features[0, 0].numpy()) > 0.2  # where x is near 0 both mechanisms say the same
    labels = cluster_mechanisms(features, targets, 2, torch.eye(2).unsqueeze(0), random_labels(1, 600))[0]
    assert agreement(labels[clear], second[clear]) > 0.97


def test_clusters_of_a_part_of_the_rows_are_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    features, targets, _ = two_mechanisms()
    start = random_labels(1, 600)
    exact = cluster_mechanisms(features, targets, 2, torch.eye(2).unsqueeze(0), start)
    monkeypatch.setattr(clustering, "MOST_ROWS", 200)
    labels = cluster_mechanisms(features, targets, 2, torch.eye(2).unsqueeze(0), start)
    assert agreement(labels[0], exact[0].numpy()) > 0.97


def test_what_is_not_usable_is_not_used() -> None:
    features, targets, second = two_mechanisms()
    without_x = torch.diag(torch.tensor([0.0, 1.0])).unsqueeze(0)
    labels = cluster_mechanisms(features, targets, 2, without_x, random_labels(1, 600))[0]
    clear = np.abs(features[0, 0].numpy()) > 0.2
    assert agreement(labels[clear], second[clear]) < 0.75


def test_trials_do_not_touch_each_other() -> None:
    features, targets, _ = two_mechanisms()
    usable = torch.stack([torch.eye(2), torch.diag(torch.tensor([1.0, 0.0])), torch.diag(torch.tensor([0.0, 1.0]))])
    start = random_labels(3, 600)
    together = cluster_mechanisms(features, targets.expand(3, -1, -1), 2, usable, start)
    for trial in range(3):
        alone = cluster_mechanisms(features, targets, 2, usable[trial : trial + 1], start[trial : trial + 1])
        assert torch.equal(together[trial], alone[0])


def test_mechanisms_are_what_gradient_descent_on_the_rows_ends_at() -> None:
    features, targets, second = two_mechanisms(rows=200)
    weights = sub_populations(torch.tensor(second).long().unsqueeze(0), 2)
    grams, crosses = moments(features, targets, weights)
    exact = solve(*restrict_moments(grams, crosses, torch.eye(2).unsqueeze(0)))[0, :, 0]  # [cluster, unit]
    for part in range(2):
        theta = torch.zeros(2, requires_grad=True)
        optimizer = torch.optim.Adam([theta], lr=0.02)
        for _ in range(2000):
            optimizer.zero_grad()
            (weights[0, part] * (theta @ features[0] - targets[0, 0]).square()).sum().backward()
            optimizer.step()
        np.testing.assert_allclose(exact[part].numpy(), theta.detach().numpy(), atol=1e-3)


def test_an_empty_cluster_stands_for_all_rows() -> None:
    weights = sub_populations(torch.zeros(1, 10, dtype=torch.long), 3)
    assert torch.allclose(weights.sum(-1), torch.ones(1, 3))
    assert torch.allclose(weights[0, 2], torch.full((10,), 0.1))


@pytest.mark.parametrize("fill", [0.0, 5.0])
def test_constant_features_do_no_harm(fill: float) -> None:
    features, targets, _ = two_mechanisms()
    features[:, 1] = fill
    labels = cluster_mechanisms(features, targets, 3, torch.eye(2).unsqueeze(0), random_labels(1, 600, 3))
    assert labels.shape == (1, 600)
    assert set(labels.unique().tolist()) <= {0, 1, 2}
