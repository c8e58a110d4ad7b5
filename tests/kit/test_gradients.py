"""Gradients of the environments' risks: the product for one layer against backward passes."""

from __future__ import annotations

import pytest
import torch

from formulas import random_rows
from oodbench import Linear, Mlp, Recipe
from oodbench.engine.models import Model
from oodbench.kit import environment_gradients
from oodbench_methods.iga import IGA
from step import step_of


@pytest.mark.parametrize("model", [Linear(), Linear(intercept=False), Mlp(width=(4,))])
@pytest.mark.parametrize(("classes", "loss"), [(0, "auto"), (2, "auto"), (3, "auto"), (2, "squared"), (3, "squared")])
def test_environment_gradients_are_those_of_backward_passes(model: Model, classes: int, loss: str) -> None:
    recipe = Recipe(loss=loss)  # type: ignore[arg-type]
    rows = step_of(IGA(), random_rows(3, classes=classes), {}, {}, model=model, recipe=recipe).rows
    expected = rows.gradients(rows.risk(rows.environments), differentiable=True)
    found = environment_gradients(rows, differentiable=True)
    assert torch.allclose(found, expected)
    ours, theirs = (
        torch.autograd.grad(gradients.square().sum(), rows.parameters, retain_graph=True)[0]
        for gradients in (found, expected)
    )
    assert torch.allclose(ours, theirs)
    assert not environment_gradients(rows).requires_grad
    assert torch.allclose(environment_gradients(rows), expected)
