"""Random numbers of a pack."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from oodbench.engine.chance import Chance


def test_shares_are_beta_distributed() -> None:
    alphas = [0.4, 1.0, 2.0, 10.0]
    drawn = Chance(range(1, 5), torch.device("cpu")).beta(torch.tensor(alphas), 20_000).double().numpy()
    for alpha, shares in zip(alphas, drawn, strict=True):
        assert stats.kstest(shares, stats.beta(alpha, alpha).cdf).pvalue > 0.01


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1e3])
def test_extreme_shares_are_shares(alpha: float) -> None:
    (shares,) = Chance([0], torch.device("cpu")).beta(torch.tensor([alpha]), 5_000).numpy()
    assert np.isfinite(shares).all()
    assert shares.min() >= 0
    assert shares.max() <= 1
    assert shares.mean() == pytest.approx(0.5, abs=0.03)
    assert shares.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.1)
