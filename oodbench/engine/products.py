"""Products of all trials' matrices with the columns of their seeds, whose bits do not depend on how many trials there are.

One product serves all trials of a seed. Libraries have other kernels for few rows, which add up in another order, so
that few are filled up with zeros. What else their order depends on is where an array lies in memory, unless MKL is told
otherwise: `oodbench.engine` does so.
"""

from __future__ import annotations

from oodbench.engine.tensor import Tensor

LEAST_ROWS = 8  # of a product; MKL has kernels of its own for 1 to 3
LEAST_SIZE = 400  # rows x inner x columns of a product; torch has a kernel of its own for smaller ones


def multiply_by_seed(matrices: Tensor, columns: Tensor) -> Tensor:
    """[seed, trial x unit, row] of matrices [trial, unit, inner] or [trial, unit x inner] and [seed, inner, row].

    Trials come seed by seed, equally many for each.
    """
    from torch.nn.functional import pad

    seeds, inner, width = columns.shape
    merged = matrices.reshape(seeds, -1, inner)
    missing = max(LEAST_ROWS, -(-LEAST_SIZE // (inner * width))) - merged.shape[1]
    if missing <= 0:
        return merged.bmm(columns)
    return pad(merged, (0, 0, 0, missing)).bmm(columns)[:, :-missing].contiguous()
