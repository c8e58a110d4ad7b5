"""A trained model, in numpy alone: what workers hand back, the driver evaluates and the record keeps.

The forward pass and the losses are those of `models.py` and `recipe.py` for a single trial; a test holds them equal.
Without torch a driver starts, and a stored model predicts, seconds sooner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.models import Model
from oodbench.recipe import Recipe


@dataclass(frozen=True, eq=False)
class FittedModel:
    model: Model
    recipe: Recipe
    width: int  # outputs a row
    classification: bool
    parameters: NDArray[np.float32]

    def predict(self, x: NDArray[np.float64]) -> NDArray[Any]:
        """Values, or class numbers. [row]"""
        outputs = self.forward(x)
        predicted: NDArray[Any]
        if not self.classification:
            predicted = outputs[0].astype(np.float64)
        else:
            predicted = outputs.argmax(0) if self.width > 1 else (outputs[0] > 0).astype(np.int64)
        return predicted

    def outputs(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value, or a score per class. [row, output]"""
        return self.forward(x).T.astype(np.float64)

    def losses(self, x: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.float64]:
        """The loss it was trained for. [row]"""
        outputs = self.forward(x).astype(np.float64)
        losses: NDArray[np.float64]
        if not self.classification:
            losses = np.square(outputs[0] - y)
            return losses
        is_class = y[None] == 1 if self.width == 1 else np.arange(self.width)[:, None] == y  # [output, row]
        if self.recipe.loss == "squared":
            losses = np.square(outputs - np.where(is_class, 1, -1)).mean(0)
            return losses
        largest = outputs.max(0)
        losses = largest + np.log(np.exp(outputs - largest).sum(0)) - outputs.T[is_class.T]
        return losses

    def forward(self, x: NDArray[np.float64]) -> NDArray[np.float32]:
        """Outputs [output, row]."""
        activation = x.T.astype(np.float32)
        start = 0
        layers = list(self.model.layers(len(activation), self.width))
        for depth, (fan_in, units) in enumerate(layers):
            piece = self.parameters[start : start + units * (fan_in + self.model.bias)]
            start += len(piece)
            if depth == 0:  # the first layer keeps each unit's bias behind its weights
                table = piece.reshape(units, -1)
                weights, bias = table[:, :fan_in], table[:, fan_in:]
            else:
                weights, bias = piece[: units * fan_in].reshape(units, fan_in), piece[units * fan_in :, None]
            activation = weights @ activation
            if self.model.bias:
                activation += bias
            if depth < len(layers) - 1:
                np.maximum(activation, 0, out=activation)
        return activation
