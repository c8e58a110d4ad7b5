"""A `torch.nn.Module` of one's own as a model family: its copies train in one batched program."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from oodbench.engine.models import Model
from oodbench.engine.tensor import Tensor
from oodbench.errors import TrainingFailed, one_line

if TYPE_CHECKING:
    from torch.nn import Module

    from oodbench.engine.chance import Chance


@dataclass(frozen=True)
class TorchModel(Model):
    """A module of one's own, under every loss method: `make` returns it; it maps x [row, feature] to [row, output].

    Its parameters are stacked and it is called under `torch.vmap`, so it has no buffers that change (no batch norm)
    and draws no random numbers (no dropout: they would not be the trial's own). Its outputs are what `rows.learned`
    is. Methods with gates, or that look at the first layer, need `mlp`.

    Examples:
        >>> @dataclass(frozen=True)
        ... class Wide(TorchModel):
        ...     name = "wide"
        ...     units_wide: int = setting(64, "hidden units")
        ...
        ...     def make(self, features, outputs):
        ...         first = torch.nn.Linear(features, self.units_wide)
        ...         return torch.nn.Sequential(first, torch.nn.Tanh(), torch.nn.Linear(self.units_wide, outputs))
    """

    @abstractmethod
    def make(self, features: int, outputs: int) -> Module:
        """A new module with its first parameters."""

    @property
    def learns_representation(self) -> bool:
        return False

    def units(self, outputs: int) -> tuple[int, ...]:
        return (256, outputs)  # a guess: only the module knows

    def parameter_count(self, inputs: int, outputs: int) -> int:
        return sum(parameter.numel() for parameter in _skeleton(self, inputs, outputs).parameters())

    def initial(self, uniform: Tensor, inputs: int, outputs: int) -> Tensor:
        import torch

        first = []
        for numbers in uniform.cpu():
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(int(numbers[0].double() * 2**31))  # every trial's own first parameters
                first.append(torch.cat([each.detach().flatten() for each in self.make(inputs, outputs).parameters()]))
        return torch.stack(first).to(uniform.device)

    def represent(self, pieces: Sequence[Tensor], columns: Tensor, chance: Chance | None = None) -> Tensor:
        return columns

    def read_out(self, pieces: Sequence[Tensor], representation: Tensor, outputs: int) -> Tensor:
        from torch.func import functional_call, vmap

        (parameters,) = pieces
        module = _skeleton(self, representation.shape[1], outputs)
        shapes = {name: parameter.shape for name, parameter in module.named_parameters()}
        parts = parameters.split_with_sizes([shape.numel() for shape in shapes.values()], dim=1)
        stacked = {name: part.view(-1, *shapes[name]) for name, part in zip(shapes, parts, strict=True)}

        def apply(own: dict[str, Tensor], x: Tensor) -> Tensor:  # [feature, row] -> [output, row]
            result: Tensor = functional_call(module, own, (x.T,))
            return result.T

        x = representation.unsqueeze(1).expand(-1, len(parameters) // len(representation), -1, -1).flatten(0, 1)
        try:
            result: Tensor = vmap(apply)(stacked, x)
        except RuntimeError as error:
            raise TrainingFailed(
                f"model {self.name!r} cannot train in packs: {one_line(error)}. "
                "Its module must have no dropout and no buffers such as batch norm's; `mlp` has dropout and norm."
            ) from None
        if result.shape[1:] != (outputs, representation.shape[2]):
            raise TrainingFailed(
                f"model {self.name!r} must return [row, output] with {outputs} outputs, "
                f"not {tuple(result.transpose(1, 2).shape[1:])}."
            )
        return result


@lru_cache(maxsize=8)
def _skeleton(model: TorchModel, inputs: int, outputs: int) -> Module:
    """The module without numbers: they come from the pack."""
    import torch

    with torch.device("meta"):
        return model.make(inputs, outputs)
