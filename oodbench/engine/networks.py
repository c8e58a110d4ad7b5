"""Networks of a method's own: parameters behind those of the model, initialised and stepped with them, dropped at the
end. A method that has none pays nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oodbench.engine.models import Model
from oodbench.engine.tensor import Tensor
from oodbench.errors import TrainingFailed

if TYPE_CHECKING:
    from oodbench.engine.chance import Chance

CACHE_BYTES = 4_000_000  # activations of a network (benchmarks/test_field.py)


@dataclass(frozen=True)
class Shape:
    """The sizes of a training.

    Examples:
        >>> Network(Mlp(width=(64,)), inputs=shape.units, outputs=shape.environments)
    """

    features: int
    units: int  # of `rows.learned`
    outputs: int
    environments: int  # 0 where they are not known
    rows: int


@dataclass(frozen=True)
class Network:
    """A network that a method trains beside the model.

    Examples:
        >>> Network(Mlp(width=(64,)), inputs=shape.units, outputs=shape.environments)
    """

    model: Model
    inputs: int
    outputs: int

    @property
    def size(self) -> int:
        return self.model.parameter_count(self.inputs, self.outputs)


class Networks:
    """The networks of a pack's trials."""

    def __init__(self, networks: Mapping[str, Network]) -> None:
        self.networks = dict(networks)
        self.size = sum(network.size for network in networks.values())

    def append(self, parameters: Tensor, chance: Chance) -> Tensor:
        """Parameters [trial, parameter] with those of the networks behind them."""
        from torch import cat

        initial = [
            network.model.initial(chance.uniform(network.size), network.inputs, network.outputs)
            for network in self.networks.values()
        ]
        return cat([parameters, *initial], 1) if initial else parameters

    def split(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Those of the model, and those of the networks."""
        end = parameters.shape[1] - self.size
        return (parameters[:, :end], parameters[:, end:]) if self.size else (parameters, parameters[:, :0])

    def apply(self, name: str, parameters: Tensor, inputs: Tensor) -> Tensor:
        """Outputs [trial, output, row] of a network on inputs [trial, input, row]."""
        from torch import cat, split

        if name not in self.networks:
            raise TrainingFailed(f"there is no network {name!r}; there are: {', '.join(self.networks)}.")
        network = self.networks[name]
        if inputs.shape[1] != network.inputs:
            raise TrainingFailed(f"network {name!r} takes {network.inputs} inputs per row, not {inputs.shape[1]}.")
        sizes = [other.size for other in self.networks.values()]
        own = dict(zip(self.networks, parameters.split_with_sizes(sizes, dim=1), strict=True))[name]
        together = self._together(network, inputs)
        parts = zip(split(own, together), split(inputs, together), strict=True)
        outputs = [_forward(network, parameters, part) for parameters, part in parts]
        return cat(outputs) if len(outputs) > 1 else outputs[0]

    @staticmethod
    def _together(network: Network, inputs: Tensor) -> int:
        """How many trials take their turn at once: on a CPU, as many as keep their activations in the cache."""
        if inputs.is_cuda:
            return len(inputs)
        return max(1, CACHE_BYTES // (4 * inputs.shape[2] * sum(network.model.units(network.outputs))))


def _forward(network: Network, parameters: Tensor, inputs: Tensor) -> Tensor:
    pieces = network.model.pieces(parameters, network.inputs, network.outputs)
    return network.model.forward(pieces, network.model.columns(inputs), network.outputs)[0]
