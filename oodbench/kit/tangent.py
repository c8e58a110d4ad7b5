"""Neural tangent features: a random wide network's gradient by its parameters, reduced to its leading directions.

A network with one hidden layer has f(x) = a relu(W [x, 1]) + c. Near its random start it is linear in its parameters,
with the gradient as features; the leading directions of these come from a sample of rows (Nyström), and every other
row is projected onto them in chunks, so that time is linear in the rows and memory bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.coding import class_signs_array
from oodbench.engine.probabilities import from_signs
from oodbench.engine.trial import training_entropy

if TYPE_CHECKING:
    from torch import Tensor

    from oodbench.engine.data import TrainingRows


def tangent_features(
    rows: TrainingRows, seed: int, width: int, rank: int, most_rows: int, megabytes: int, device: Any = "cpu"
) -> tuple[TangentBasis, Tensor]:
    """A seed's random network and its leading directions, and the rows projected onto them [1, direction, row].

    The network depends on the seed alone, so that it serves all configurations. Arguments as for `TangentBasis`.
    """
    import torch

    x = torch.tensor(rows.x, dtype=torch.float32, device=device)
    basis = TangentBasis.fit(x, width, rank, most_rows, training_entropy("tangent", 0, seed))
    return basis, basis.project(x, megabytes).unsqueeze(0)


@dataclass(frozen=True, eq=False)
class TangentBasis:
    """A random network, and directions in its parameter space."""

    hidden: Tensor  # [unit, feature + 1]
    read_out: Tensor  # [unit]
    by_hidden: Tensor  # [feature + 1, unit, direction]
    by_read_out: Tensor  # [unit, direction]
    by_constant: Tensor  # [direction]

    @classmethod
    def fit(cls, x: Tensor, width: int, rank: int, most_rows: int, entropy: int) -> TangentBasis:
        """The `rank` leading directions (fewer where there are fewer rows) of at most `most_rows` of the rows x.

        The CPU finds them, in double precision: what is on a GPU is fetched for it, once.
        """
        import torch
        from scipy.sparse.linalg import eigsh

        generator = torch.Generator().manual_seed(entropy)
        hidden = (_uniform(generator, width, x.shape[1] + 1) / x.shape[1] ** 0.5).to(x.device)
        read_out = (_uniform(generator, width) / width**0.5).to(x.device)
        sample = x[torch.randperm(len(x), generator=generator)[:most_rows].sort().values.to(x.device)]
        inputs, gates, units = _layers(sample, hidden, read_out)
        kernel = (inputs @ inputs.T) * (gates @ gates.T) + units @ units.T + 1  # [row, row]
        rank = min(rank, len(sample) - 1)
        values, vectors = eigsh(kernel.double().cpu().numpy(), k=rank, v0=np.ones(len(sample)))
        leading = np.argsort(-values)
        scale = np.sqrt(np.maximum(values[leading], 1e-9 * values.max()))
        directions = torch.from_numpy(vectors[:, leading] / scale).float().to(x.device)  # [row, direction]
        return cls(
            hidden=hidden,
            read_out=read_out,
            by_hidden=torch.stack([gates.T @ (directions * column.unsqueeze(1)) for column in inputs.T]),
            by_read_out=units.T @ directions,
            by_constant=directions.sum(0),
        )

    def project(self, x: Tensor, megabytes: int) -> Tensor:
        """Features [direction, row] of rows x [row, feature], with at most so much memory for what is in between."""
        features = x.new_empty(self.by_constant.shape[0], len(x))
        for start, stop in _chunks(len(x), len(self.read_out), megabytes):
            inputs, gates, units = _layers(x[start:stop], self.hidden, self.read_out)
            projected = units @ self.by_read_out + self.by_constant
            for column, by_column in zip(inputs.T, self.by_hidden, strict=True):
                projected += column.unsqueeze(1) * (gates @ by_column)
            features[:, start:stop] = projected.T
        return features

    def on_cpu(self) -> TangentBasis:
        """The same, fetched from its device."""
        return TangentBasis(**{name: tensor.cpu() for name, tensor in vars(self).items()})

    def model(self, theta: Tensor, classification: bool, megabytes: int) -> TangentModel:
        """The predictor with coefficients theta [output, direction]: a change of the network's parameters.

        Both are on the CPU.
        """
        return TangentModel(
            hidden=self.hidden.numpy(),
            read_out=self.read_out.numpy(),
            hidden_change=(self.by_hidden @ theta.T).permute(2, 1, 0).contiguous().numpy(),
            read_out_change=(self.by_read_out @ theta.T).T.contiguous().numpy(),
            constant=(theta @ self.by_constant).numpy(),
            classification=classification,
            megabytes=megabytes,
        )


@dataclass(frozen=True, eq=False)
class TangentModel:
    """A predictor that is linear in tangent features, in numpy alone. Classes are fitted as -1, +1."""

    hidden: NDArray[np.float32]  # [unit, feature + 1]
    read_out: NDArray[np.float32]  # [unit]
    hidden_change: NDArray[np.float32]  # [output, unit, feature + 1]
    read_out_change: NDArray[np.float32]  # [output, unit]
    constant: NDArray[np.float32]  # [output]
    classification: bool
    megabytes: int

    def arrays(self) -> dict[str, NDArray[Any]]:
        names = ("hidden", "read_out", "hidden_change", "read_out_change", "constant")
        return {name: getattr(self, name) for name in names}

    def about(self) -> dict[str, str]:
        return {
            "family": "tangent",
            "classification": str(self.classification),
            "megabytes": str(self.megabytes),
        }

    @classmethod
    def restore(cls, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, str]) -> TangentModel:
        """What `arrays` and `about` were made of."""
        (outputs,), (units, inputs) = arrays["constant"].shape, arrays["hidden"].shape
        shapes = {"hidden_change": (outputs, units, inputs), "read_out_change": (outputs, units), "read_out": (units,)}
        if any(arrays[name].shape != shape for name, shape in shapes.items()):
            raise ValueError("its arrays do not fit together")
        return cls(**arrays, classification=about["classification"] == "True", megabytes=int(about["megabytes"]))

    def outputs(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value, or a score per class (of class 1 alone, where there are two). [row, output]"""
        outputs = np.empty((len(x), len(self.constant)))
        for start, stop in _chunks(len(x), len(self.read_out), self.megabytes):
            inputs = np.hstack([x[start:stop], np.ones((stop - start, 1))]).astype(np.float32)
            units = inputs @ self.hidden.T
            gates = (units > 0) * self.read_out
            np.maximum(units, 0, out=units)
            for output, change in enumerate(self.hidden_change):
                outputs[start:stop, output] = (
                    np.einsum("rf,rf->r", gates @ change, inputs)
                    + units @ self.read_out_change[output]
                    + self.constant[output]
                )
        return outputs

    def predict(self, x: NDArray[np.float64]) -> NDArray[Any]:
        """Values, or class numbers. [row]"""
        outputs = self.outputs(x)
        if not self.classification:
            return outputs[:, 0]
        return outputs.argmax(1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0).astype(np.int64)

    def predict_proba(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of a classifier, what its scores come to as probabilities. [row, class]"""
        return from_signs(self.outputs(x))

    def losses(self, x: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.float64]:
        """The squared loss. [row]"""
        outputs = self.outputs(x)
        if self.classification:  # in the memory order of the outputs, which decides the order of the sums below
            targets = np.ascontiguousarray(class_signs_array(y, outputs.shape[1], np.float64).T)
        else:
            targets = y[:, None]
        losses: NDArray[np.float64] = np.square(outputs - targets).mean(1)
        return losses


def _layers(x: Tensor, hidden: Tensor, read_out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs with a one [row, feature + 1], what passes a unit times its read-out, and its value [row, unit]."""
    inputs = x.new_ones(len(x), x.shape[1] + 1)
    inputs[:, :-1] = x
    units = inputs @ hidden.T
    return inputs, (units > 0) * read_out, units.relu()


def _chunks(rows: int, width: int, megabytes: int) -> Iterator[tuple[int, int]]:
    size = max(1, int(megabytes * 1e6 / (4 * 4 * width)))  # about four arrays [row, unit] of four bytes at once
    for start in range(0, rows, size):
        yield start, min(rows, start + size)


def _uniform(generator: Any, *shape: int) -> Tensor:
    import torch

    return 2 * torch.rand(*shape, generator=generator) - 1
