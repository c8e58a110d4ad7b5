"""The training recipe: how every loss method trains, the same for all of them on one dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from oodbench.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

LARGE = 16_384  # rows from which full-batch steps cost more than they bring
LARGE_BATCH = 2_048


@dataclass(frozen=True)
class Recipe:
    steps: int = setting(2000, "gradient steps of one training")
    optimizer: Literal["adam", "sgd"] = setting("adam", "sgd has momentum 0.9")
    batch: int = setting(0, f"rows a step; 0 takes all rows, or {LARGE_BATCH} where there are over {LARGE}")
    loss: Literal["auto", "squared", "cross_entropy"] = setting(
        "auto",
        "auto: squared for regression, cross_entropy for classification; squared fits classes as -1, +1",
    )

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError("steps must be at least 1.")
        if self.batch < 0:
            raise ValueError("batch must be 0 or more.")

    def batch_rows(self, rows: int) -> int:
        wanted = self.batch or (LARGE_BATCH if rows > LARGE else rows)
        return min(wanted, rows)

    def row_losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Losses [trial, row] of outputs [trial, output, row] for targets [trial, row]."""
        from torch.nn.functional import mse_loss

        if not y.is_floating_point():
            if self.loss in ("auto", "cross_entropy"):
                chosen = outputs.gather(1, y.unsqueeze(1)).squeeze(1)
                return outputs.logsumexp(1) - chosen
            signs = outputs.new_full(outputs.shape, -1.0).scatter(1, y.unsqueeze(1), 1.0)
            return mse_loss(outputs, signs, reduction="none").mean(1)
        return mse_loss(outputs.squeeze(1), y, reduction="none")

    def row_slopes(self, outputs: Tensor, y: Tensor) -> Tensor:
        """How each row's loss changes as its outputs are scaled, at scale 1: [trial, row]. Exact, without autograd."""
        if y.is_floating_point():
            values = outputs.squeeze(1)
            return 2 * (values - y) * values
        is_class = outputs.new_zeros(outputs.shape).scatter(1, y.unsqueeze(1), 1.0)
        if self.loss == "squared":
            return (2 * (outputs - (2 * is_class - 1)) * outputs).mean(1)
        return ((outputs.softmax(1) - is_class) * outputs).sum(1)
