"""Gradients that are reversed, masked, compared, or known row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oodbench.engine.products import multiply

if TYPE_CHECKING:
    from torch import Tensor

    from oodbench.engine.rows import Rows


def reverse_gradient(values: Tensor) -> Tensor:
    """The same values, exactly; gradients that pass them backwards change their sign."""
    constant = values.detach()
    return constant + (constant - values)


def environment_gradients(rows: Rows, differentiable: bool = False) -> Tensor:
    """The gradients of the environments' risks by `rows.parameters`: [trial, environment, parameter].

    Of a model with one layer they are products of slopes and columns, which take no backward pass for each.
    """
    import torch

    one_layer = not rows.learns_representation and rows.parameters.shape[1] == rows.first_layer[0].numel()
    if not one_layer:
        return rows.gradients(rows.risk(rows.environments), differentiable)
    with torch.set_grad_enabled(differentiable):
        weighted = rows.environments.unsqueeze(2) * rows.output_slopes.unsqueeze(1)  # [trial, k, output, row]
        products = weighted.flatten(1, 2) @ rows.representation.mT
    return products.view(*weighted.shape[:2], -1)


def sign_agreement(gradients: Tensor) -> Tensor:
    """How far the environments agree on the sign, 0 to 1: [trial, environment, parameter] -> [trial, parameter]."""
    return gradients.sign().mean(1).abs()


def masked_mean(gradients: Tensor, mask: Tensor) -> Tensor:
    """The mean gradient where the mask [trial, parameter] lets it pass, scaled up by what it holds back."""
    return gradients.mean(1) * mask / (mask.mean(-1, keepdim=True) + 1e-10)


def unit_first_layer(gradients: Tensor, rows: Rows) -> Tensor:
    """Gradients [trial, environment, parameter] where those of each environment by the first layer's weights have
    length one; biases and other layers as they are."""
    from torch import cat

    _, units, width = rows.first_layer.shape
    features = rows.shared_x.shape[1]
    first = gradients[..., : units * width].reshape(*gradients.shape[:2], units, width)
    weights, biases = first[..., :features], first[..., features:]
    length = weights.square().sum((-2, -1), keepdim=True).sqrt().clamp(min=1e-12)
    return cat([cat([weights / length, biases], -1).flatten(-2), gradients[..., units * width :]], -1)


def last_layer_variances(rows: Rows, weights: Tensor) -> Tensor:
    """The variance of the rows' gradients by each weight of the last layer: [trial, k, parameter], differentiable.

    Under sub-populations [trial, k, row]. A row's gradient is the slope of its loss by the outputs times what the last
    layer sees, so that the moments are two products.
    """
    from torch import cat

    seen = rows.representation  # of a linear model it has the constant already
    if rows.learns_representation:
        seen = cat([seen, seen.new_ones(len(seen), 1, seen.shape[2])], 1)
    slopes = rows.output_slopes

    def mean(slopes: Tensor, seen: Tensor) -> Tensor:
        weighted = weights.unsqueeze(2) * slopes.unsqueeze(1)  # [trial, k, output, row]
        return multiply(weighted.flatten(1, 2), seen.mT).view(*weights.shape[:2], -1)

    return mean(slopes.square(), seen.square()) - mean(slopes, seen).square()


def first_layer_gap(rows: Rows, weights: Tensor) -> Tensor:
    """The mean squared gap [trial] between the gradients of all rows' risk and of a sub-population's [trial, row].

    The gradients are by the first layer's weights, its biases left out.
    """
    gap = rows.first_layer_gradient(rows.weights - weights)[:, :, : rows.shared_x.shape[1]]
    return gap.square().mean((1, 2))


def gap_along_gradient(rows: Rows, weights: Tensor) -> Tensor:
    """<grad(R - R_Q), grad R_Q> [trial]: R is all rows' risk, R_Q that of a sub-population Q [trial, row]."""
    part = rows.risk(weights)
    return (rows.gradient(rows.risk() - part) * rows.gradient(part)).sum(-1)
