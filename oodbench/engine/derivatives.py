"""The product by seed of many units, with a derivative that is computed transposed: for ten columns in half the time.

The library's own derivative has few columns, for which MKL is slow.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def product_by_seed(matrices: Tensor, columns: Tensor) -> Tensor:
    """[seed, trial x unit, row] of matrices [seed, trial x unit, inner] and columns [seed, inner, row]."""
    product: Tensor = _Product.apply(matrices, columns)  # type: ignore[no-untyped-call]
    return product


def sum_over_rows(values: Tensor, columns: Tensor) -> Tensor:
    """[seed, trial x unit, inner] of values [seed, trial x unit, row] and columns [seed, inner, row]."""
    total: Tensor = _SumOverRows.apply(values, columns)  # type: ignore[no-untyped-call]
    return total


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
