"""Twenty trained MLPs on 1.24 million rows: together, as the sealed evaluation does it, against one model at a time in
batches of rows with one torch thread: at this size two of them are slower."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import torch

from oodbench import Environment, Mlp, Recipe
from oodbench.engine.fitted import FittedModel
from oodbench.engine.scoring import f1, score_together

ROWS, FEATURES, MODELS, BATCH = 1_240_000, 16, 20, 1024


def models() -> list[FittedModel]:
    family = Mlp(width=(20, 10))
    rng = np.random.default_rng(0)
    size = family.parameter_count(FEATURES, 2)
    draws = [rng.normal(0, 0.3, size).astype(np.float32) for _ in range(MODELS)]
    return [FittedModel(family, Recipe(), 2, True, parameters) for parameters in draws]


def eager(model: FittedModel) -> torch.nn.Sequential:
    net = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 20), torch.nn.ReLU(), torch.nn.Linear(20, 10), torch.nn.ReLU(), torch.nn.Linear(10, 2)
    )
    pieces = [torch.tensor(piece) for piece in np.split(model.parameters, [20 * 17, 20 * 17 + 10 * 21])]
    first = pieces[0].view(20, 17)
    with torch.no_grad():
        net[0].weight.copy_(first[:, :16])
        net[0].bias.copy_(first[:, 16])
        for layer, piece in ((net[2], pieces[1]), (net[4], pieces[2])):
            layer.weight.copy_(piece[: layer.weight.numel()].view_as(layer.weight))
            layer.bias.copy_(piece[layer.weight.numel() :])
    return net


def score_eagerly(model: FittedModel, environment: Environment) -> dict[str, float]:
    net, predicted, losses = eager(model), [], []
    with torch.no_grad():
        for start in range(0, len(environment), BATCH):
            x = torch.tensor(environment.x[start : start + BATCH], dtype=torch.float32)
            y = torch.tensor(environment.y[start : start + BATCH])
            outputs = net(x)
            predicted.append(outputs.argmax(1))
            losses.append(torch.nn.functional.cross_entropy(outputs, y, reduction="none"))
    classes = torch.cat(predicted).numpy()
    accuracy = float(np.mean(classes == environment.y))
    return {"accuracy": accuracy, "f1": f1(environment.y, classes, 2), "loss": float(torch.cat(losses).mean())}


def test_evaluating_together(report: Callable[[str], None]) -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    environment = Environment("all", rng.normal(size=(ROWS, FEATURES)), rng.integers(0, 2, ROWS))
    fitted = models()
    started = time.perf_counter()
    slow_scores = [score_eagerly(model, environment) for model in fitted]
    slow = time.perf_counter() - started
    started = time.perf_counter()
    fast_scores = score_together(fitted, environment, "classification", 2, threads=os.cpu_count() or 1)
    fast = time.perf_counter() - started
    for one, other in zip(fast_scores, slow_scores, strict=True):
        assert isinstance(one, dict)
        assert abs(one["accuracy"] - other["accuracy"]) < 1e-4
        assert abs(one["loss"] - other["loss"]) < 1e-3
    report(f"20 MLPs on 1.24 million rows: eager {slow:.1f} s, together {fast:.1f} s, {slow / fast:.1f}x (floor 5x)")
    assert slow / fast >= 5
