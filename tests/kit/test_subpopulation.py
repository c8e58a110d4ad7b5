"""Worst sub-populations against a linear-programme solver and the dual of the chi-square problem."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar

from oodbench.kit.subpopulation import worst_chi_square, worst_share

scores_lists = st.lists(st.floats(0, 100, width=32), min_size=2, max_size=30)
shares = st.floats(0.02, 1.0)


def _worst(find: Callable[..., torch.Tensor], scores: list[float], alpha0: float) -> tuple[np.ndarray, np.ndarray]:
    values = torch.tensor([scores], dtype=torch.float64)
    return values[0].numpy(), find(values, torch.tensor([alpha0], dtype=torch.float64))[0].numpy()


@given(scores_lists, shares)
@settings(deadline=None)
def test_worst_share_solves_the_linear_programme(scores: list[float], alpha0: float) -> None:
    values, weights = _worst(worst_share, scores, alpha0)
    cap = 1 / max(alpha0 * len(values), 1)
    exact = linprog(-values, A_eq=np.ones((1, len(values))), b_eq=[1], bounds=(0, cap))
    assert np.isclose(weights.sum(), 1)
    assert weights.min() >= -1e-12
    assert weights.max() <= cap + 1e-9
    assert np.isclose(weights @ values, -exact.fun, rtol=1e-6, atol=1e-6)


def test_a_share_of_everything_is_the_mean() -> None:
    _, weights = _worst(worst_share, [1.0, 5.0, 3.0], 1.0)
    assert np.allclose(weights, 1 / 3)


@given(scores_lists, shares)
@settings(deadline=None)
def test_worst_chi_square_meets_its_dual(scores: list[float], alpha0: float) -> None:
    values, weights = _worst(worst_chi_square, scores, alpha0)
    rows = len(values)
    bound = 1 / max(alpha0, 1 / rows)

    def dual(eta: float) -> float:
        return eta + float(np.sqrt(bound * np.mean(np.maximum(values - eta, 0) ** 2)))

    width = max(np.ptp(values), 1.0)
    best = min(
        minimize_scalar(dual, bounds=(low, values.max()), method="bounded", options={"xatol": 1e-9}).fun
        for low in (values.max() - width, values.min() - 10 * width, values.min() - 1000 * width)
    )
    assert np.isclose(weights.sum(), 1)
    assert rows * np.sum(weights**2) <= bound * (1 + 1e-5)
    assert weights @ values <= best + 1e-4 * width
    assert weights @ values >= best - 2e-3 * width


@given(scores_lists, shares)
@settings(deadline=None)
def test_the_chi_square_ball_holds_the_worst_share(scores: list[float], alpha0: float) -> None:
    values, share = _worst(worst_share, scores, alpha0)
    _, ball = _worst(worst_chi_square, scores, alpha0)
    assert ball @ values >= share @ values - 1e-3 * max(np.ptp(values), 1)


def test_trials_of_a_pack_may_have_different_shares() -> None:
    scores = torch.rand(3, 50, generator=torch.Generator().manual_seed(0))
    together = worst_share(scores, torch.tensor([0.1, 0.25, 0.5]))
    for row, alpha0 in enumerate([0.1, 0.25, 0.5]):
        assert torch.equal(together[row], worst_share(scores[row : row + 1], torch.tensor([alpha0]))[0])
