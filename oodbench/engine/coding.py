"""Classes as targets of a squared loss: +1 for the class of a row, else -1; a single output stands for class 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def class_signs(y: Tensor, outputs: int, dtype: torch.dtype) -> Tensor:
    """[trial, output, row] of class numbers [trial, row]."""
    if outputs == 1:
        return (2 * y - 1).unsqueeze(1).to(dtype)
    return y.new_full((len(y), outputs, y.shape[-1]), -1, dtype=dtype).scatter(1, y.unsqueeze(1), 1)


def class_signs_array(y: NDArray[Any], outputs: int, dtype: DTypeLike) -> NDArray[Any]:
    """The same in numpy: [output, row] of class numbers [row]."""
    is_class = y[None] == 1 if outputs == 1 else np.arange(outputs)[:, None] == y
    plus = np.ones((), dtype)
    return np.where(is_class, plus, -plus)


def signed_targets(y: Tensor, classes: int) -> Tensor:
    """What a least squares fits: y, or for classes -1 and +1 (two of them with one output). [trial, output, row]"""
    from torch import float32

    if y.is_floating_point():
        return y.float().unsqueeze(1)
    return class_signs(y, 1 if classes == 2 else classes, float32)
