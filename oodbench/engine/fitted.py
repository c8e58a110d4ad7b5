"""A trained model, in numpy alone: what workers hand back, the driver evaluates and the record keeps.

Plain layers and the losses are those of `models.py` and `recipe.py` for a single trial; a test holds them equal.
Without torch a driver starts, and a stored model predicts, seconds sooner. Every other family is evaluated by its own
forward pass, in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.blas import one_blas_thread
from oodbench.engine.coding import class_signs_array
from oodbench.engine.data import Task
from oodbench.engine.models import Layered, Linear, Model
from oodbench.engine.probabilities import from_logits, from_signs
from oodbench.engine.recipe import Recipe
from oodbench.errors import TrainingFailed
from oodbench.settings.fields import as_texts, configure

CHUNK_ROWS = 2048  # the same for any number of models, so that a model's numbers do not depend on the others
CACHE_BYTES = 2_000_000  # of the widest layer's activations; more models than fit take turns
WORTH_THREADS = 16  # chunks of a model, for each thread: fewer take less time than starting it
SETTING = "model."

T = TypeVar("T")
Forward = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Outputs [model, output, row] of inputs [feature, row]."""


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A trained model: what `trainer.fit` returns, one for each trial.

    Examples:
        >>> wrong = fitted.predict(rows.x) != rows.y
    """

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

    def predict_proba(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of a classifier, what its scores come to as probabilities. [row, class]"""
        return np.concatenate(over_chunks([self], x, lambda outputs, _: self.probabilities_from(outputs[0])))

    def losses(self, x: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.float64]:
        """The loss it was trained for. [row]"""
        return self.losses_from(self.forward(x), y)

    def forward(self, x: NDArray[np.float64]) -> NDArray[np.float32]:
        """Outputs [output, row]."""
        outputs: NDArray[np.float32] = forward_together([self], x)[0]
        return outputs

    def represent(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the last layer sees of each row; for a linear model x itself. [row, unit]"""
        self._layered()
        inputs = np.ascontiguousarray(x.T, np.float32)
        represented = _represent_plain(self, inputs) if self.model.is_plain else _represent_in_torch(self, inputs)
        return represented.T.astype(np.float64)

    def last_layer(self, features: int) -> NDArray[np.float64]:
        """Of a model on so many features: [output, unit + 1], the constant last."""
        weights, bias = stack_layers([self], features)[-1]
        return np.concatenate([weights[0], bias[0]], axis=1).astype(np.float64)

    def with_last_layer(self, coefficients: NDArray[np.float64], features: int) -> FittedModel:
        """The same representation under another last layer [output, unit + 1], with a constant: of logits, or values.

        A linear model without a constant term gets one.
        """
        if not self.model.learns_representation:
            return linear_model(coefficients, self.classification)
        *_, (fan_in, _) = self._layered().layers(features, self.width)
        kept = self.parameters[: len(self.parameters) - self.width * (fan_in + 1)]
        last = [coefficients[:, :-1].ravel(), coefficients[:, -1]]
        parameters = np.concatenate([kept, *last]).astype(np.float32)
        return FittedModel(self.model, Recipe(), len(coefficients), self.classification, parameters)

    def on_wider_table(self, places: Sequence[int], features: int) -> FittedModel:
        """The same model on a table of so many features, of which it reads those at `places` and no other."""
        family = self._layered()
        units = next(iter(family.layers(len(places), self.width)))[1]
        table = self.parameters[: units * (len(places) + family.bias)].reshape(units, -1)
        wider = np.zeros((units, features + family.bias), np.float32)
        wider[:, [*places, *([features] if family.bias else [])]] = table
        return replace(self, parameters=np.concatenate([wider.ravel(), self.parameters[table.size :]]))

    def _layered(self) -> Layered:
        if not isinstance(self.model, Layered):
            raise TrainingFailed("the method takes the layers of the model apart: use the model linear or mlp.")
        return self.model

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"parameters": self.parameters}

    def about(self) -> dict[str, str]:
        family = {"family": self.model.name} | {f"{SETTING}{key}": value for key, value in as_texts(self.model).items()}
        shape = {"outputs": str(self.width), "classification": str(self.classification), "loss": self.recipe.loss}
        return family | shape

    @classmethod
    def restore(cls, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, str], family: type[Model]) -> FittedModel:
        """What `arrays` and `about` were made of, and the family that `about` names."""
        (_,) = arrays["parameters"].shape  # a list of numbers
        settings = {key.removeprefix(SETTING): value for key, value in about.items() if key.startswith(SETTING)}
        return cls(
            configure(family, settings, "the stored model"),
            configure(Recipe, {"loss": about["loss"]}, "the stored model"),
            int(about["outputs"]),
            about["classification"] == "True",
            arrays["parameters"],
        )

    def predict_from(self, outputs: NDArray[np.float32]) -> NDArray[Any]:
        """Predictions [..., row] from outputs [..., output, row]."""
        predicted: NDArray[Any]
        if not self.classification:
            predicted = outputs[..., 0, :].astype(np.float64)
        elif self.width > 2:
            predicted = outputs.argmax(-2)
        else:  # nearly ten times faster than argmax
            first = outputs[..., 0, :] if self.width == 2 else 0
            predicted = (outputs[..., -1, :] > first).astype(np.int64)
        return predicted

    def probabilities_from(self, outputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Probabilities [row, class] from outputs [output, row]."""
        of_rows = outputs.T.astype(np.float64)
        return from_signs(of_rows) if self.recipe.loss == "squared" else from_logits(of_rows)

    def losses_from(self, outputs: NDArray[np.float32], y: NDArray[Any]) -> NDArray[np.float64]:
        """Losses [..., row] from outputs [..., output, row]."""
        losses: NDArray[Any]
        if not self.classification:
            losses = np.square(outputs[..., 0, :].astype(np.float64) - y)
        elif self.recipe.loss == "squared":
            losses = np.square(outputs - class_signs_array(y, self.width, np.float32)).mean(-2)
        elif self.width == 2:  # half the work of the general case
            wrong = (outputs[..., 1, :] - outputs[..., 0, :]) * np.where(y == 1, -1, 1).astype(outputs.dtype)
            losses = -np.abs(wrong)
            np.log1p(np.exp(losses, out=losses), out=losses)
            losses += np.maximum(wrong, 0, out=wrong)
        else:
            chosen = outputs[..., y, np.arange(len(y))]
            others = outputs - chosen[..., None, :]
            largest = others.max(-2)
            losses = largest + np.log(np.exp(others - largest[..., None, :]).sum(-2))
        return losses.astype(np.float64)


def linear_model(coefficients: NDArray[np.float64], classification: bool, recipe: Recipe | None = None) -> FittedModel:
    """A linear model with these coefficients [output, feature + 1], the constant last."""
    parameters = coefficients.ravel().astype(np.float32)
    return FittedModel(Linear(), recipe or Recipe(), len(coefficients), classification, parameters)


def constant_model(
    y: NDArray[Any], task: Task, classes: int, width: int, weights: NDArray[np.float64] | None = None
) -> FittedModel:
    """The mean of y, or its most frequent class, under weights [row], for rows of so many features."""
    if task == "regression":
        constants = np.array([y.mean() if weights is None else np.average(y, weights=weights)])
    else:
        total = len(y) if weights is None else weights.sum()
        constants = np.log(np.maximum(np.bincount(y, weights, minlength=classes) / total, 1e-12))
    coefficients = np.zeros((len(constants), width + 1))
    coefficients[:, -1] = constants
    return linear_model(coefficients, task == "classification")


def forward_together(models: Sequence[FittedModel], x: NDArray[np.float64]) -> NDArray[np.float32]:
    """Outputs [model, output, row] of models of one shape."""
    return np.concatenate(over_chunks(models, x, lambda outputs, _: outputs), axis=-1)


def over_chunks(
    models: Sequence[FittedModel],
    x: NDArray[np.float64],
    use: Callable[[NDArray[np.float32], slice], T],
    threads: int = 1,
) -> list[T]:
    """What `use` makes of the outputs [model, output, row] of every chunk of rows, in their order.

    The models have one shape and go over the rows together; the activations of a chunk stay in the cache.
    """
    together = max(1, CACHE_BYTES // (4 * max(models[0].model.units(models[0].width)) * CHUNK_ROWS))
    forward = _forward_plain if models[0].model.is_plain else _forward_in_torch
    passes = [forward(models[start : start + together], x.shape[1]) for start in range(0, len(models), together)]

    def use_chunk(start: int) -> T:
        rows = slice(start, min(start + CHUNK_ROWS, len(x)))
        inputs = np.ascontiguousarray(x[rows].T, np.float32)
        return use(np.concatenate([apply(inputs) for apply in passes]), rows)

    starts = range(0, len(x), CHUNK_ROWS)
    with one_blas_thread():  # products of a chunk are small: threads within them wait for each other
        if threads == 1 or len(starts) * len(models) < WORTH_THREADS * threads:
            return [use_chunk(start) for start in starts]
        with ThreadPoolExecutor(threads) as executor:
            return list(executor.map(use_chunk, starts))


def _forward_plain(models: Sequence[FittedModel], features: int) -> Forward:
    layers = stack_layers(models, features)
    zeros = np.zeros(CHUNK_ROWS, np.float32)  # against an array, numpy finds the larger one in half the time

    def apply(activation: NDArray[np.float32]) -> NDArray[np.float32]:
        for depth, (weights, bias) in enumerate(layers):
            activation = weights @ activation  # [model, unit, row]
            activation += bias
            if depth < len(layers) - 1:
                np.maximum(activation, zeros[: activation.shape[-1]], out=activation)
        return activation

    return apply


def _represent_plain(model: FittedModel, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """What the last layer sees [unit, row] of inputs [feature, row]."""
    for weights, bias in stack_layers([model], len(inputs))[:-1]:
        inputs = np.maximum(weights[0] @ inputs + bias[0], 0)
    return inputs


def _represent_in_torch(model: FittedModel, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    import torch

    family = model.model
    with torch.no_grad():
        pieces = family.pieces(torch.from_numpy(model.parameters[None]), len(inputs), model.width)
        represented = family.represent(pieces, family.columns(torch.from_numpy(inputs[None])))
        numbers: NDArray[np.float32] = represented[0].numpy()
    return numbers


def _forward_in_torch(models: Sequence[FittedModel], features: int) -> Forward:
    import torch

    family, outputs = models[0].model, models[0].width
    parameters = torch.from_numpy(np.stack([model.parameters for model in models]))
    pieces = family.pieces(parameters, features, outputs)

    def apply(inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.no_grad():
            represented = family.represent(pieces, family.columns(torch.from_numpy(inputs).unsqueeze(0)))
            result: NDArray[np.float32] = family.read_out(pieces, represented, outputs).numpy()
        return result

    return apply


def stack_layers(models: Sequence[FittedModel], features: int) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Weights [model, unit, input] and biases [model, unit, 1] of every layer; without biases, zeros."""
    family, parameters = models[0].model, np.stack([model.parameters for model in models])
    assert isinstance(family, Layered)
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
        if not family.bias:
            bias = np.zeros((len(models), units, 1), np.float32)
        layers.append((np.ascontiguousarray(weights), bias))
    return layers
