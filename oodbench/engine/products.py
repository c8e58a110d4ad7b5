"""Products whose bits do not depend on how many trials or seeds are computed together.

Libraries have other kernels for few rows, for vectors and for a single matrix, and these add up in another order. So a
product with few rows is filled up with zeros, and a lone vector product gets a mate. What else the order depends on is
where an array lies in memory, unless MKL is told otherwise: `oodbench.engine` does so.
"""

from __future__ import annotations

from oodbench.engine.tensor import Tensor

LEAST_ROWS = 8  # of a product; MKL has kernels of its own for 1 to 3
LEAST_SIZE = 400  # rows x inner x columns of a product; torch has a kernel of its own for smaller ones
MANY_UNITS, BY = 16, 4  # of a trial, and a multiple: fewer have a kernel of their own in the derivative


def multiply_by_seed(matrices: Tensor, columns: Tensor) -> Tensor:
    """[seed, trial x unit, row] of matrices [trial, unit, inner] or [trial, unit x inner] and [seed, inner, row].

    One product serves all trials of a seed. Trials come seed by seed, equally many for each.
    """
    from torch.nn.functional import pad

    seeds, inner, width = columns.shape
    merged = matrices.reshape(seeds, -1, inner)
    units = matrices.numel() // (len(matrices) * inner)
    if units >= MANY_UNITS and units % BY == 0 and inner * width >= LEAST_SIZE:
        from oodbench.engine.derivatives import product_by_seed

        return product_by_seed(merged, columns)
    missing = max(LEAST_ROWS, -(-LEAST_SIZE // (inner * width))) - merged.shape[1]
    if missing <= 0:
        return merged.bmm(columns)
    return pad(merged, (0, 0, 0, missing)).bmm(columns)[:, :-missing].contiguous()


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """[trial, row, column] of [trial, row, inner] and [trial, inner, column], also in its derivatives."""
    if _has_no_mate(left, right):
        return left.expand(2, -1, -1).bmm(right.expand(2, -1, -1))[:1]
    return left.bmm(right)


def multiply_and_add(left: Tensor, right: Tensor, start: Tensor) -> Tensor:
    """`multiply`, added to a start [trial, row, 1]."""
    if _has_no_mate(left, right):
        return start.expand(2, -1, -1).baddbmm(left.expand(2, -1, -1), right.expand(2, -1, -1))[:1]
    return start.baddbmm(left, right)


def _has_no_mate(left: Tensor, right: Tensor) -> bool:
    """Whether it, or a derivative of it, is a lone product with a vector."""
    return len(left) == 1 and min(*left.shape[1:], right.shape[2]) == 1
