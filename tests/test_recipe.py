"""Losses and slopes against torch's own functions and autograd."""

from __future__ import annotations

import pytest
import torch

from oodbench import Recipe

KINDS = [
    ("regression", "auto"),
    ("classification", "cross_entropy"),
    ("classification", "auto"),
    ("classification", "squared"),
]


def example(task: str) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(3, 1 if task == "regression" else 4, 20, generator=generator, dtype=torch.float64)
    if task == "regression":
        return outputs, torch.randn(3, 20, generator=generator, dtype=torch.float64)
    return outputs, torch.randint(0, 4, (3, 20), generator=generator)


@pytest.mark.parametrize(("task", "loss"), KINDS)
def test_slopes_are_the_derivative_of_the_losses_by_a_scale(task: str, loss: str) -> None:
    outputs, y = example(task)
    recipe = Recipe(loss=loss)
    scale = torch.ones(3, 1, 20, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(recipe.row_losses(outputs * scale, y).sum(), scale)
    assert torch.allclose(recipe.row_slopes(outputs, y), expected.squeeze(1))


def test_cross_entropy_is_torchs() -> None:
    outputs, y = example("classification")
    expected = torch.nn.functional.cross_entropy(outputs, y, reduction="none")
    assert torch.allclose(Recipe().row_losses(outputs, y), expected)
