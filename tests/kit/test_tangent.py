"""Tangent features against autograd, and the predictor made of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oodbench.kit.tangent import TangentBasis

WIDTH, FEATURES = 32, 3


def rows(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, FEATURES, generator=torch.Generator().manual_seed(seed))


def gradients(basis: TangentBasis, x: torch.Tensor) -> torch.Tensor:
    """The network's gradient by all of its parameters, row by row, by autograd. [row, parameter]"""
    hidden, read_out = basis.hidden.clone().requires_grad_(), basis.read_out.clone().requires_grad_()
    constant = torch.zeros((), requires_grad=True)
    found = []
    for row in x:
        value = read_out @ (hidden @ torch.cat([row, torch.ones(1)])).relu() + constant
        parts = torch.autograd.grad(value, (hidden, read_out, constant))
        found.append(torch.cat([part.reshape(-1) for part in parts]))
    return torch.stack(found)


def test_features_are_the_leading_directions_of_the_gradient() -> None:
    x = rows(40)
    basis = TangentBasis.fit(x, WIDTH, 10, 1000, 7)
    gradient = gradients(basis, x).numpy()
    left, values, right = np.linalg.svd(gradient, full_matrices=False)
    expected = left[:, :10] * values[:10]
    features = basis.project(x, 100).numpy().T
    np.testing.assert_allclose(np.abs(features), np.abs(expected), rtol=2e-3, atol=2e-3)
    new = rows(15, seed=1)
    np.testing.assert_allclose(
        np.abs(basis.project(new, 100).numpy().T), np.abs(gradients(basis, new).numpy() @ right[:10].T), atol=5e-3
    )


def test_chunks_change_nothing() -> None:
    x = rows(3000)
    basis = TangentBasis.fit(x, WIDTH, 8, 200, 0)
    np.testing.assert_allclose(basis.project(x, 1).numpy(), basis.project(x, 1000).numpy(), atol=1e-4)


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_model_is_the_linear_function_of_the_features(outputs: int) -> None:
    x = rows(50)
    basis = TangentBasis.fit(x, WIDTH, 8, 1000, 0)
    theta = torch.randn(outputs, 8, generator=torch.Generator().manual_seed(3))
    model = basis.model(theta, classification=outputs > 1, megabytes=1)
    new = rows(20, seed=2)
    expected = (theta @ basis.project(new, 100)).numpy().T
    np.testing.assert_allclose(model.outputs(new.double().numpy()), expected, rtol=1e-3, atol=1e-3)


def test_fewer_rows_than_directions() -> None:
    basis = TangentBasis.fit(rows(5), WIDTH, 60, 2500, 0)
    assert basis.project(rows(9), 100).shape == (4, 9)


def test_the_same_seed_gives_the_same_basis() -> None:
    one, two = (TangentBasis.fit(rows(30), WIDTH, 5, 1000, 4) for _ in range(2))
    assert torch.equal(one.by_hidden, two.by_hidden)
