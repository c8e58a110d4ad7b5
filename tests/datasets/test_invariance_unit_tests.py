"""The linear unit tests against closed forms: covariances, the errors of oracles, and what a rotation leaves alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from oodbench import Environment, check_dataset
from oodbench.plugin.dataset import fingerprint
from oodbench_datasets.invariance_unit_tests import NOISE, SHARES, InvarianceUnitTests
from oodbench_datasets.linear_maps import product, random_rotation


def test_conforms() -> None:
    check_dataset(InvarianceUnitTests)


def test_the_same_on_any_machine() -> None:
    data = [InvarianceUnitTests(example=example, scrambled=True, rows=100) for example in (1, 2, 3)]
    assert [fingerprint(own.test(0)) for own in data] == PINNED


PINNED = ["55e4dc1ef684e14b", "097cb66af0ae75b8", "7db045fd8f619638"]


def test_rotations_and_products() -> None:
    rotation = random_rotation(np.random.default_rng(0), 10)
    assert np.allclose(rotation @ rotation.T, np.eye(10), atol=1e-14)
    rows = np.random.default_rng(1).normal(size=(50, 10))
    assert np.allclose(product(rows, rotation), rows @ rotation)


def test_example_1_has_the_covariances_of_its_equations() -> None:
    data = InvarianceUnitTests(example=1, rows=40_000)
    causes, effects = data.causes(3), data.effects(3)
    for environment, std in zip(data.train(3), NOISE, strict=True):
        of_y = std**2 * (causes.T @ causes + np.eye(5))
        expected = np.block(
            [
                [std**2 * np.eye(5), std**2 * causes @ effects],
                [std**2 * (causes @ effects).T, effects.T @ of_y @ effects + np.eye(5)],
            ]
        )
        assert np.allclose(np.cov(environment.x.T), expected, atol=0.04 * max(1, std**2))
        assert np.var(environment.y) == pytest.approx(of_y.sum(), rel=0.03)


def test_the_oracle_of_example_1_is_left_with_the_noise_of_y() -> None:
    """Five times the mean squared noise: 10.43."""
    data = InvarianceUnitTests(example=1)
    noise = 5 * np.mean(np.square(NOISE))
    assert noise == pytest.approx(10.43, abs=0.005)
    true = data.coefficients(0)
    assert true is not None
    assert np.array_equal(true[5:], np.zeros(5))
    errors = [np.mean((environment.y - environment.x @ true) ** 2) for environment in data.test(0)]
    assert np.mean(errors) == pytest.approx(noise, rel=0.03)
    x, y = together(data.train(0))
    assert np.allclose(np.linalg.lstsq(x[:, :5], y)[0], true[:5], atol=0.1)


def test_example_2_has_the_shares_of_cows_and_grass() -> None:
    data = InvarianceUnitTests(example=2, rows=50_000)
    for environment, (usual, cows) in zip(data.train(0), SHARES, strict=True):
        animal, background = np.sign(environment.x[:, :5].mean(1)), np.sign(environment.x[:, 5:].mean(1))
        assert np.mean(animal == background) == pytest.approx(usual, abs=0.005)
        assert np.mean(environment.y) == pytest.approx(cows, abs=0.01)
        assert np.array_equal(animal > 0, environment.y == 1)  # the oracle makes no error
        rest = environment.x / np.repeat([0.01, 1.0], 5) - np.column_stack([animal] * 5 + [background] * 5)
        assert np.allclose(np.cov(rest.T), np.eye(10) / 10, atol=0.005)


def test_example_3_has_its_margins_and_its_oracle() -> None:
    """The sum of five N(0.1, 0.1^2) is negative with probability Phi(-sqrt 5) = 0.0127."""
    data = InvarianceUnitTests(example=3, rows=50_000)
    oracle = math.erfc(math.sqrt(5 / 2)) / 2
    assert oracle == pytest.approx(0.0127, abs=5e-5)
    for environment, centre in zip(data.train(0), data.centres(0), strict=True):
        zeros = environment.x[environment.y == 0]
        assert np.allclose(zeros.mean(0), [*[0.1] * 5, *centre], atol=0.005)
        assert np.allclose(np.cov(zeros.T), 0.01 * np.eye(10), atol=5e-4)
        wrong = (environment.x[:, :5].sum(1) < 0) != (environment.y == 1)
        assert np.mean(wrong) == pytest.approx(oracle, abs=0.002)


@pytest.mark.parametrize("example", [1, 2, 3])
def test_in_test_the_spurious_columns_say_nothing_of_y(example: Any) -> None:
    data = InvarianceUnitTests(example=example, rows=20_000)
    for train, test in zip(data.train(1), data.test(1), strict=True):
        assert test.name == train.name
        assert np.abs(np.corrcoef(test.x[:, 5:].T, test.y)[-1, :-1]).max() < 0.04
        assert np.abs(np.corrcoef(test.x[:, :5].T, test.x[:, 5:].T)[:5, 5:]).max() < 0.04
        assert np.allclose(np.cov(test.x[:, 5:].T), np.cov(train.x[:, 5:].T), rtol=0.1, atol=0.05)
    assert np.abs(np.corrcoef(data.train(1)[-1].x[:, 5:].T, data.train(1)[-1].y)[-1, :-1]).max() > 0.2


def test_scrambled_is_the_same_but_rotated() -> None:
    plain, scrambled = (InvarianceUnitTests(rows=100, scrambled=scrambled) for scrambled in (False, True))
    assert (plain.invariant, scrambled.invariant) == (tuple(range(5)), None)
    rotation = random_rotation(scrambled.rng(2, "rotation"), 10)
    true, rotated = plain.coefficients(2), scrambled.coefficients(2)
    assert true is not None
    assert rotated is not None
    for one, other in zip(plain.test(2), scrambled.test(2), strict=True):
        assert np.allclose(one.x @ rotation, other.x)
        assert np.allclose(one.x @ true, other.x @ rotated)
        assert np.array_equal(one.y, other.y)


@pytest.mark.parametrize("example", [1, 2, 3])
def test_more_environments_come_after_the_first(example: Any) -> None:
    three, ten = (InvarianceUnitTests(example=example, rows=40, environments=n).train(0) for n in (3, 10))
    assert [environment.name for environment in ten] == [f"E{number}" for number in range(10)]
    for one, other in zip(three, ten, strict=False):
        assert np.array_equal(one.x, other.x)


@pytest.mark.parametrize("bad", [{"environments": 1}, {"environments": 11}, {"rows": 10}, {"spurious_columns": 0}])
def test_impossible_settings(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        InvarianceUnitTests(**bad)


def together(environments: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    pooled = Environment.pooled("all", environments)
    return pooled.x, pooled.y
