"""Operations of a step with derivatives that cost less than the library's own.

The derivative of a product by seed is computed transposed: for ten columns in half the time, as MKL is slow where a
product has few columns. relu's second derivative by its own values is nothing, rather than zeros that are added up.
Behind one hidden layer, a lone output's slopes multiply the few columns rather than the many units.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from oodbench.engine.products import multiply, multiply_and_add, multiply_by_seed


def product_by_seed(matrices: Tensor, columns: Tensor) -> Tensor:
    """[seed, trial x unit, row] of matrices [seed, trial x unit, inner] and columns [seed, inner, row]."""
    product: Tensor = _apply(_Product, matrices, columns)
    return product


def relu_(values: Tensor) -> Tensor:
    """In place."""
    positive: Tensor = _apply(_Relu, values)
    return positive


def sum_over_rows(values: Tensor, columns: Tensor) -> Tensor:
    """[seed, trial x unit, inner] of values [seed, trial x unit, row] and columns [seed, inner, row]."""
    sums: Tensor = _apply(_SumOverRows, values, columns)
    return sums


def output_behind_relu(matrices: Tensor, weights: Tensor, bias: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """The lone output [trial, 1, row] behind a hidden layer with relu, and that layer's units [trial, unit, row].

    Of matrices [trial, unit, inner], weights [trial, 1, unit], bias [trial, 1, 1] and columns [seed, inner, row], which
    are constant. Trials come seed by seed, equally many for each.
    """
    output, hidden = _apply(_OutputBehindRelu, matrices, weights, bias, columns)
    return output, hidden


def _apply(function: type[torch.autograd.Function], *tensors: Tensor) -> Any:
    return function.apply(*tensors)  # type: ignore[no-untyped-call]  # torch does not type it


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrices: Tensor, columns: Tensor) -> Tensor:
        ctx.save_for_backward(matrices, columns)
        return matrices.bmm(columns)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        matrices, columns = ctx.saved_tensors
        by_matrices, by_columns = ctx.needs_input_grad
        return (
            sum_over_rows(gradient, columns) if by_matrices else None,
            matrices.mT.bmm(gradient) if by_columns else None,
        )


class _SumOverRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, columns: Tensor) -> Tensor:
        ctx.save_for_backward(values, columns)
        return columns.bmm(values.mT).mT.contiguous()  # sums of another layout would add up in another order

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        values, columns = ctx.saved_tensors
        by_values, by_columns = ctx.needs_input_grad
        return (
            product_by_seed(gradient, columns) if by_values else None,
            gradient.mT.bmm(values) if by_columns else None,
        )


class _Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        ctx.mark_dirty(values)
        positive = values.relu_()
        ctx.save_for_backward(positive)
        return positive

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (positive,) = ctx.saved_tensors
        masked: Tensor = _apply(_Mask, gradient, positive.detach())
        return masked


class _Mask(torch.autograd.Function):
    """A gradient where values are positive, and zero elsewhere."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, positive: Tensor) -> Tensor:
        ctx.save_for_backward(positive)
        masked: Tensor = torch.ops.aten.threshold_backward(gradient, positive, 0)
        return masked

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (positive,) = ctx.saved_tensors
        return _apply(_Mask, gradient, positive), None


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
