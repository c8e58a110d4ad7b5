"""A network with one hidden layer, relu and one output: its backward pass makes no array of units and rows.

A lone output's slopes multiply the few columns rather than the many units.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from oodbench.engine.derivatives import apply, sum_over_rows
from oodbench.engine.products import multiply, multiply_and_add, multiply_by_seed


def output_behind_relu(matrices: Tensor, weights: Tensor, bias: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """The lone output [trial, 1, row] behind a hidden layer with relu, and that layer's units [trial, unit, row].

    Of matrices [trial, unit, inner], weights [trial, 1, unit], bias [trial, 1, 1] and columns [seed, inner, row], which
    are constant. Trials come seed by seed, equally many for each.
    """
    output, hidden = apply(_OutputBehindRelu, matrices, weights, bias, columns)
    return output, hidden


class _OutputBehindRelu(torch.autograd.Function):
    """The gradient of unit u's weights is w_u sum over rows of on_ur s_r x_r, with s the slopes of the output: no array
    [unit, row] is made for it, and it is differentiable by s and w in the library's own operations."""

    @staticmethod
    def forward(ctx: Any, matrices: Tensor, weights: Tensor, bias: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        hidden = multiply_by_seed(matrices, columns).view(*matrices.shape[:2], -1)
        on = torch.gt(hidden, 0, out=torch.empty_like(hidden))  # as numbers at once: a tenth of the time of booleans
        hidden.relu_()
        ctx.save_for_backward(weights, columns, hidden, on)
        ctx.set_materialize_grads(False)
        return multiply_and_add(weights, hidden, bias), hidden

    @staticmethod
    def backward(ctx: Any, by_output: Tensor | None, by_hidden: Tensor | None) -> tuple[Tensor | None, ...]:
        weights, columns, hidden, on = ctx.saved_tensors
        by_matrices = by_weights = by_bias = None
        if by_output is not None:
            sloped = (columns.unsqueeze(1) * by_output.reshape(len(columns), -1, 1, columns.shape[2])).flatten(0, 1)
            by_matrices = (sloped.bmm(on.mT) * weights).mT.contiguous()
            by_weights, by_bias = multiply(by_output, hidden.mT), by_output.sum(-1, keepdim=True)
        if by_hidden is not None:  # what else looks at the hidden layer
            masked = (by_hidden * on).reshape(len(columns), -1, columns.shape[2])
            more = sum_over_rows(masked, columns).view(*hidden.shape[:2], -1)
            by_matrices = more if by_matrices is None else by_matrices + more
        return by_matrices, by_weights, by_bias, None
