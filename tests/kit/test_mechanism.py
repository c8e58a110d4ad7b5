"""Mechanisms against other solvers, and the worst sub-population where it is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from oodbench.kit.mechanism import fit_mechanism, output_losses, worst_mechanism


def mechanism_losses(
    representation: torch.Tensor, y: torch.Tensor, classes: int, weights: torch.Tensor, loss: str
) -> torch.Tensor:
    """Of the fitted outputs, which the coefficients must give, too."""
    coefficients, outputs = fit_mechanism(representation, y, classes, weights, loss)
    assert torch.allclose(coefficients @ representation, outputs)
    return output_losses(outputs, y, classes, loss)


def draw(rows: int = 300, units: int = 4, trials: int = 2) -> tuple[torch.Tensor, torch.Tensor, np.random.Generator]:
    rng = np.random.default_rng(0)
    representation = torch.tensor(rng.normal(size=(trials, units, rows)))
    weights = torch.tensor(rng.random((trials, rows)))
    return representation, weights / weights.sum(-1, keepdim=True), rng


def test_regression_is_weighted_least_squares() -> None:
    representation, weights, rng = draw()
    y = torch.tensor(rng.normal(size=weights.shape))
    losses = mechanism_losses(representation, y, 1, weights, "auto")
    for trial in range(2):
        x, target, root = representation[trial].numpy().T, y[trial].numpy(), np.sqrt(weights[trial].numpy())
        coefficients = np.linalg.lstsq(x * root[:, None], target * root, rcond=None)[0]
        np.testing.assert_allclose(losses[trial].numpy(), (target - x @ coefficients) ** 2, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_classification_is_multinomial_logistic_regression(classes: int) -> None:
    representation, weights, rng = draw(trials=1)
    x = representation[0].numpy().T
    y = np.argmax(x @ rng.normal(size=(4, classes)) + rng.gumbel(size=(300, classes)), axis=1)
    losses = mechanism_losses(representation, torch.tensor(y).unsqueeze(0), classes, weights, "cross_entropy")
    reference = LogisticRegression(C=1e8, fit_intercept=False, tol=1e-8, max_iter=1000)
    reference.fit(x, y, sample_weight=weights[0].numpy() * 300)
    expected = -np.log(reference.predict_proba(x)[np.arange(300), y])
    ours, theirs = float(weights[0] @ losses[0]), float(weights[0].numpy() @ expected)
    assert abs(ours - theirs) < 0.005


def test_constant_and_repeated_features_do_no_harm() -> None:
    representation, weights, rng = draw()
    representation[:, 1] = 0
    representation[:, 2] = representation[:, 3]
    y = torch.tensor(rng.normal(size=weights.shape))
    assert torch.isfinite(mechanism_losses(representation, y, 1, weights, "auto")).all()


def test_a_trial_that_diverged_does_not_stop_its_mates() -> None:
    representation, weights, rng = draw()
    y = torch.tensor(rng.normal(size=weights.shape))
    alone = worst_mechanism(representation[:1], y[:1], 1, torch.tensor([0.1]), "auto", 2)
    representation[1] = float("nan")
    together = worst_mechanism(representation, y, 1, torch.tensor([0.1, 0.1]), "auto", 2)
    assert torch.equal(together[0], alone[0])


@pytest.mark.parametrize("loss", ["regression", "squared", "cross_entropy"])
def test_the_worst_sub_population_is_the_planted_one(loss: str) -> None:
    """One row in ten follows the opposite rule."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1000, 2))
    minority = np.arange(1000) < 100
    signal = x[:, 0] * np.where(minority, -3, 3)
    y = torch.tensor(signal + 0.1 * rng.normal(size=1000) if loss == "regression" else (signal > 0).astype(int))
    weights = worst_mechanism(torch.tensor(x.T).unsqueeze(0), y.unsqueeze(0), 2, torch.tensor([0.1]), loss, passes=3)[0]
    assert float(weights[torch.tensor(minority)].sum()) > 0.8
