"""Losses and slopes against torch's own functions and autograd."""

from __future__ import annotations

from typing import Literal

import pytest
import torch

from oodbench import Recipe

Loss = Literal["auto", "squared", "cross_entropy"]

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
def test_slopes_are_the_derivative_of_the_losses_by_a_scale(task: str, loss: Loss) -> None:
    outputs, y = example(task)
    recipe = Recipe(loss=loss)
    scale = torch.ones(3, 1, 20, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(recipe.row_losses(outputs * scale, y).sum(), scale)
    assert torch.allclose(recipe.row_slopes(outputs, y), expected.squeeze(1))


def test_cross_entropy_is_torchs() -> None:
    outputs, y = example("classification")
    expected = torch.nn.functional.cross_entropy(outputs, y, reduction="none")
    assert torch.allclose(Recipe().row_losses(outputs, y), expected)


def test_two_classes_by_squared_loss_are_one_output() -> None:
    recipe = Recipe(loss="squared")
    assert [recipe.outputs(True, 2), recipe.outputs(True, 3), recipe.outputs(False, 2)] == [1, 3, 1]
    assert Recipe().outputs(True, 2) == 2
    outputs, y = torch.tensor([[[0.5, -0.5]]]), torch.tensor([[1, 0]])
    assert torch.allclose(recipe.row_losses(outputs, y), torch.tensor([[0.25, 0.25]]))
    assert torch.allclose(recipe.row_slopes(outputs, y), torch.tensor([[-0.5, -0.5]]))


@pytest.mark.parametrize(("task", "loss"), KINDS)
def test_output_slopes_are_the_derivative_by_the_outputs(task: str, loss: Loss) -> None:
    outputs, y = example(task)
    outputs.requires_grad_()
    (expected,) = torch.autograd.grad(Recipe(loss=loss).row_losses(outputs, y).sum(), outputs)
    assert torch.allclose(Recipe(loss=loss).output_slopes(outputs, y), expected)
