"""The training recipe: how every loss method trains, the same for all of them on one dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from oodbench.engine.coding import class_signs
from oodbench.settings.fields import setting

if TYPE_CHECKING:
    from torch import Tensor

LARGE = 16_384  # rows from which full-batch steps cost more than they bring
LARGE_BATCH = 2_048
LARGE_LOGIT_PART = 3_072  # rows of a logistic fit, which goes over them again and again


@dataclass(frozen=True)
class Recipe:
    """How loss methods train: `--set-training`, and a dataset's `recipe`.

    Examples:
        >>> recipe = Recipe(steps=500, optimizer="sgd", batch=256)
    """

    steps: int = setting(2000, "gradient steps of one training")
    optimizer: Literal["adam", "sgd", "gd"] = setting("adam", "adam, sgd with momentum 0.9, or gd without")
    batch: int = setting(0, f"rows per step; 0: all rows, or {LARGE_BATCH} if there are more than {LARGE}")
    loss: Literal["auto", "squared", "cross_entropy"] = setting(
        "auto",
        "auto: squared for regression, cross_entropy for classification; squared fits classes as -1, +1 "
        "(two classes with a single output)",
    )
    explore: int = setting(
        0,
        f"rows to which explorers fit; 0: at most {LARGE}, or {LARGE_LOGIT_PART} of more rows for the repeated "
        "logistic fits of an MLP",
    )

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError("steps must be at least 1.")
        if self.batch < 0:
            raise ValueError("batch must be 0 or more.")
        if self.explore < 0:
            raise ValueError("explore must be 0 or more.")

    def batch_rows(self, rows: int) -> int:
        wanted = self.batch or (LARGE_BATCH if rows > LARGE else rows)
        return min(wanted, rows)

    def explored_rows(self, rows: int, classification: bool, repeated: bool) -> int:
        """To how many of so many rows the explorers of methods fit mechanisms, once or repeatedly."""
        costly = repeated and classification and self.loss != "squared"
        wanted = self.explore or (LARGE_LOGIT_PART if costly and rows > LARGE else LARGE)
        return min(wanted, rows)

    def outputs(self, classification: bool, classes: int) -> int:
        """How many outputs a model has per row."""
        return classes if classification and (classes > 2 or self.loss != "squared") else 1

    def row_losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Losses [trial, row] of outputs [trial, output, row] for targets [trial, row]."""
        from torch.nn.functional import mse_loss

        if not y.is_floating_point():
            if self.loss in ("auto", "cross_entropy"):
                chosen = outputs.gather(1, y.unsqueeze(1)).squeeze(1)
                return outputs.logsumexp(1) - chosen
            return mse_loss(outputs, class_signs(y, outputs.shape[1], outputs.dtype), reduction="none").mean(1)
        return mse_loss(outputs.squeeze(1), y, reduction="none")

    def row_slopes(self, outputs: Tensor, y: Tensor) -> Tensor:
        """How each row's loss changes as its outputs are scaled, at scale 1: [trial, row]. Exact, without autograd."""
        return (self.output_slopes(outputs, y) * outputs).sum(1)

    def output_slopes(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The derivative of each row's loss by its outputs: [trial, output, row]."""
        if y.is_floating_point():
            return 2 * (outputs - y.unsqueeze(1))
        if self.loss == "squared":
            return 2 / outputs.shape[1] * (outputs - class_signs(y, outputs.shape[1], outputs.dtype))
        is_class = outputs.new_zeros(outputs.shape).scatter(1, y.unsqueeze(1), 1.0)
        return outputs.softmax(1) - is_class
