"""The name `Tensor` for annotations, without importing torch: listing methods must not wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ForwardRef

if TYPE_CHECKING:
    from torch import Tensor as Tensor
else:
    Tensor = ForwardRef("torch.Tensor")
