"""The structural equations against closed forms: covariances, and what least squares has to find in them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from oodbench import Environment, check_dataset
from oodbench_datasets.irm_sem import IrmSem

Array = NDArray[np.float64]


def test_conforms() -> None:
    check_dataset(IrmSem)


def covariance(data: IrmSem, seed: int, scale: float) -> Array:
    """Of X, Z and Y, from the equations: they are linear in the noises of H, X, Y and Z."""
    size = data.size
    to_x, to_y, to_z = data.from_hidden(seed)
    eye, nothing = np.eye(size), np.zeros((size, size))
    x = np.vstack([to_x, eye, nothing, nothing])  # [noise, column]
    y = x + np.vstack([to_y, nothing, eye, nothing])
    z = y + np.vstack([to_z, nothing, nothing, eye])
    of_y, of_z = (scale, 1.0) if data.heteroskedastic else (1.0, scale)
    noise = np.repeat([scale, scale, of_y, of_z], size) ** 2
    everything = np.hstack([x, z, y])
    return np.asarray(everything.T @ (noise[:, None] * everything))


def least_squares(data: IrmSem, seed: int) -> Array:
    """The coefficients that least squares finds in infinitely many rows of the training environments together."""
    pooled = np.mean([covariance(data, seed, scale) for scale in data.scales], 0)
    table = 2 * data.size
    return np.asarray(np.linalg.solve(pooled[:table, :table], pooled[:table, table:].sum(1)))


@pytest.mark.parametrize(("hidden", "heteroskedastic"), list(product([False, True], repeat=2)))
def test_moments_and_least_squares(hidden: bool, heteroskedastic: bool) -> None:
    data = IrmSem(hidden=hidden, heteroskedastic=heteroskedastic, rows=20_000)
    for environment, scale in zip(data.train(1), data.scales, strict=True):
        expected = covariance(data, 1, scale)
        found = np.cov(environment.x.T)
        assert np.allclose(found, expected[:10, :10], atol=0.04 * max(1, expected.max()))
        assert np.var(environment.y) == pytest.approx(expected[10:, 10:].sum(), rel=0.03)
    pooled = Environment.pooled("all", data.train(1))
    assert np.allclose(np.linalg.lstsq(pooled.x, pooled.y)[0], least_squares(data, 1), atol=0.02)


@pytest.mark.parametrize(("heteroskedastic", "published"), [(False, 0.009), (True, 0.8207)])
def test_the_published_errors_of_erm(heteroskedastic: bool, published: float) -> None:
    """With the mean square m of the scales, Z gets m / (1 + m) where the noise of Y varies, else 1 / (1 + m)."""
    data = IrmSem(heteroskedastic=heteroskedastic)
    m = np.mean(np.square(data.scales))
    on_z = (m if heteroskedastic else 1) / (1 + m)
    true = data.coefficients(0)
    assert np.allclose(least_squares(data, 0) - true, [*[-on_z] * 5, *[on_z] * 5])
    assert on_z**2 == pytest.approx(published, rel=0.05)
    errors = []
    for seed in range(10):
        pooled = Environment.pooled("all", data.train(seed))
        errors.append(np.square(np.linalg.lstsq(pooled.x, pooled.y)[0] - true).mean())
    assert np.mean(errors) == pytest.approx(published, rel=0.1)


def test_scrambled_columns_have_rotated_coefficients() -> None:
    plain, scrambled = IrmSem(rows=100), IrmSem(rows=100, scrambled=True)
    true, rotated = plain.coefficients(0), scrambled.coefficients(0)
    assert np.all(rotated != 0)
    assert (plain.invariant, scrambled.invariant, IrmSem(hidden=True).invariant) == (tuple(range(5)), None, None)
    for one, other in zip(plain.train(0), scrambled.train(0), strict=True):
        assert np.allclose(one.x @ true, other.x @ rotated)
        assert np.array_equal(one.y, other.y)


def test_the_last_environment_can_be_for_the_choice_alone() -> None:
    data = IrmSem(rows=50, choose_by="last")
    assert [environment.name for environment in data.train(0)] == ["e=0.2", "e=2"]
    assert [environment.name for environment in data.validation(0)] == ["e=5"]


@pytest.mark.parametrize("bad", [{"scales": (1.0, 1.0)}, {"scales": (1.0,), "choose_by": "last"}, {"test_scale": 0.0}])
def test_impossible_settings(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="scales"):
        IrmSem(**bad)
