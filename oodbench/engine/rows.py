"""What a loss sees of a gradient step: the rows and hyper-parameters of all trials of a pack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oodbench.engine.coding import class_signs
from oodbench.engine.recipe import Recipe

if TYPE_CHECKING:
    from torch import Tensor


class Hparams:
    """Hyper-parameters of a pack: `hp.alpha0` is a tensor [trial]; texts and options are plain values.

    Examples:
        >>> penalty = hp.penalty * risks.var(-1) if hp.variant == "squared" else hp.penalty * risks.std(-1)
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no hyper-parameter {name!r}; the search space has {', '.join(self.__dict__)}")


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one gradient step, for all trials of a pack.

    Examples:
        >>> worst = rows.risk(rows.environments).amax(-1)  # [trial]
    """

    losses: Tensor  # [trial, row]
    outputs: Tensor  # [trial, output, row]
    y: Tensor  # [trial, row]
    step: int
    recipe: Recipe = field(default_factory=Recipe)
    explored: Tensor | None = None  # [trial, row] or [trial, k, row]: what `explore` found last, if asked yet
    environments_or_none: Tensor | None = None  # [trial, environment, row]
    gates: Tensor | None = None  # [trial, feature]: how far the gates are open, without their noise
    columns: Tensor | None = None  # [seed or trial, feature (+ 1 for a bias), row]: what the first layer is applied to
    random: Tensor | None = None  # [trial, row]: numbers in [0, 1), each trial's own; only while exploring
    represented: Tensor | None = None  # [seed or trial, unit, row]: what the last layer is applied to
    parameters: Tensor | None = None  # [trial, parameter]
    first_layer: Tensor | None = None  # [trial, unit, feature]

    @property
    def environments(self) -> Tensor:
        """The known groups as sub-populations: weights [trial, environment, row], each summing to one."""
        if self.environments_or_none is None:
            raise AttributeError('environment labels are not given: add needs = {"environments"} to the method')
        return self.environments_or_none

    @property
    def classes(self) -> int:
        """How many classes there are, for classification."""
        return max(2, self.outputs.shape[1])

    @property
    def representation(self) -> Tensor:
        """What the last layer sees of each row: [trial, unit, row]."""
        assert self.represented is not None
        return per_trial(self.represented, len(self.losses) // len(self.represented))

    def signed_targets(self) -> Tensor:
        """What a least squares fits: [trial, output, row]."""
        return signed_targets(self.y, self.classes)

    def risk(self, weights: Tensor) -> Tensor:
        """Mean loss under sub-populations: [trial, row] -> [trial], [trial, k, row] -> [trial, k]."""
        return _weighted(self.losses, weights)

    def scale_gradient(self, weights: Tensor) -> Tensor:
        """How the risks change as the outputs are scaled, at scale 1: shapes as for `risk`."""
        return _weighted(self.recipe.row_slopes(self.outputs, self.y), weights)

    def first_layer_gradient(self, weights: Tensor) -> Tensor:
        """The gradient of the risk under weights [trial, row], which may be signed, by the first layer: differentiable.

        [trial, unit, feature]. Where the first layer is the only one, this is a product rather than a backward pass.
        """
        if self.columns is None or self.represented is not self.columns or self.gates is not None:
            return self.gradient(self.risk(weights), of=self.first_layer)
        slopes = self.recipe.output_slopes(self.outputs, self.y) * weights.unsqueeze(1)  # [trial, output, row]
        seeds, width, _ = self.columns.shape
        product = slopes.view(seeds, -1, slopes.shape[2]).bmm(self.columns.transpose(1, 2))
        return product.view(len(slopes), -1, width)

    def gradient(self, risk: Tensor, of: Tensor | None) -> Tensor:
        """The gradient of a risk [trial] by `rows.parameters` or `rows.first_layer`, itself differentiable."""
        from torch.autograd import grad

        assert of is not None
        (gradient,) = grad(risk.sum(), of, create_graph=True)
        return gradient


def signed_targets(y: Tensor, classes: int) -> Tensor:
    """What a least squares fits: y, or for classes -1 and +1 (two of them with one output). [trial, output, row]"""
    from torch import float32

    if y.is_floating_point():
        return y.float().unsqueeze(1)
    return class_signs(y, 1 if classes == 2 else classes, float32)


def _weighted(values: Tensor, weights: Tensor) -> Tensor:
    return ((values if weights.dim() == 2 else values.unsqueeze(1)) * weights).sum(-1)


def per_trial(by_seed: Tensor, repeats: int) -> Tensor:
    """[seed, ...] -> [trial, ...], without a copy where one seed serves all trials."""
    expanded = by_seed.unsqueeze(1).expand(-1, repeats, *by_seed.shape[1:])
    return expanded.reshape(-1, *by_seed.shape[1:])
