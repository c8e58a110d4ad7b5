"""A trained model, in numpy alone: what workers hand back, the driver evaluates and the record keeps.

The forward pass and the losses are those of `models.py` and `recipe.py` for a single trial; a test holds them equal.
Without torch a driver starts, and a stored model predicts, seconds sooner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.models import Model
from oodbench.recipe import Recipe
from oodbench.settings import as_dict

CACHE_BYTES = 1_000_000  # of the widest layer, for a chunk of rows


@dataclass(frozen=True, eq=False)
class FittedModel:
    model: Model
    recipe: Recipe
    width: int  # outputs a row
    classification: bool
    parameters: NDArray[np.float32]

    def predict(self, x: NDArray[np.float64]) -> NDArray[Any]:
        """Values, or class numbers. [row]"""
        return self.predict_from(self.forward(x))

    def outputs(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value, or a score per class. [row, output]"""
        return self.forward(x).T.astype(np.float64)

    def losses(self, x: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.float64]:
        """The loss it was trained for. [row]"""
        return self.losses_from(self.forward(x), y)

    def forward(self, x: NDArray[np.float64]) -> NDArray[np.float32]:
        """Outputs [output, row]."""
        outputs: NDArray[np.float32] = forward_together([self], x)[0]
        return outputs

    def answers(self, outputs: NDArray[np.float32], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Predictions and losses from outputs that are there already."""
        return self.predict_from(outputs), self.losses_from(outputs, y)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"parameters": self.parameters}

    def about(self) -> dict[str, str]:
        family = {"family": self.model.name} | {f"model.{key}": value for key, value in as_dict(self.model).items()}
        shape = {"outputs": self.width, "classification": self.classification, "loss": self.recipe.loss}
        return {key: str(value) for key, value in (family | shape).items()}

    def predict_from(self, outputs: NDArray[np.float32]) -> NDArray[Any]:
        predicted: NDArray[Any]
        if not self.classification:
            predicted = outputs[0].astype(np.float64)
        elif self.width > 2:
            predicted = outputs.argmax(0)
        else:  # nearly ten times faster than argmax
            predicted = (outputs[-1] > (outputs[0] if self.width == 2 else 0)).astype(np.int64)
        return predicted

    def losses_from(self, outputs: NDArray[np.float32], y: NDArray[Any]) -> NDArray[np.float64]:
        losses: NDArray[Any]
        if not self.classification:
            losses = np.square(outputs[0].astype(np.float64) - y)
        elif self.recipe.loss == "squared":
            is_class = y[None] == 1 if self.width == 1 else np.arange(self.width)[:, None] == y  # [output, row]
            losses = np.square(outputs - np.where(is_class, np.float32(1), np.float32(-1))).mean(0)
        else:
            chosen = np.take_along_axis(outputs, y[None], 0)[0]
            others = outputs - chosen
            largest = others.max(0)
            losses = largest + np.log(np.exp(others - largest).sum(0))
        return losses.astype(np.float64)


def forward_together(models: Sequence[FittedModel], x: NDArray[np.float64]) -> NDArray[np.float32]:
    """Outputs [model, output, row] of models of one shape, in one pass over the rows for all of them.

    In chunks of rows whose activations stay in the cache.
    """
    layers = _stack_layers(models, x.shape[1])
    outputs = np.empty((len(models), models[0].width, len(x)), np.float32)
    widest = max(weights.shape[1] for weights, _ in layers)
    size = max(64, CACHE_BYTES // (4 * len(models) * widest))
    for start in range(0, len(x), size):
        activation = x[start : start + size].T.astype(np.float32)
        for depth, (weights, bias) in enumerate(layers):
            activation = weights @ activation  # [model, unit, row]
            if bias is not None:
                activation += bias
            if depth < len(layers) - 1:
                np.maximum(activation, 0, out=activation)
        outputs[:, :, start : start + size] = activation
    return outputs


def _stack_layers(
    models: Sequence[FittedModel], features: int
) -> list[tuple[NDArray[np.float32], NDArray[np.float32] | None]]:
    """Weights [model, unit, input] and biases [model, unit, 1] of every layer."""
    family, parameters = models[0].model, np.stack([model.parameters for model in models])
    layers = []
    start = 0
    for depth, (fan_in, units) in enumerate(family.layers(features, models[0].width)):
        piece = parameters[:, start : start + units * (fan_in + family.bias)]
        start += piece.shape[1]
        if depth == 0:  # the first layer keeps each unit's bias behind its weights
            table = piece.reshape(len(models), units, -1)
            weights, bias = table[:, :, :fan_in], table[:, :, fan_in:]
        else:
            weights, bias = piece[:, : units * fan_in].reshape(-1, units, fan_in), piece[:, units * fan_in :, None]
        layers.append((np.ascontiguousarray(weights), bias if family.bias else None))
    return layers
