"""The other way for every loss method: one training after the other, as one would write it with torch alone.

A process of its own, so that what packs do to their process does not help here. Prints JSON.

    python eager_field.py time linear|mlp STEPS TRAININGS METHOD...     milliseconds of CPU time a training and step
    python eager_field.py value linear|mlp STEPS FILE                   losses at given parameters, for comparison
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import torch
from eager_losses import LOSSES, Training
from eager_stages import DIRECTIONS, WHOLE, by_direction, descend, model

ROWS, FEATURES, ENVIRONMENTS = 2000, 10, 3
WIDTHS = {"linear": (), "mlp": (20, 10)}
CLASSIFICATION = ("afr", "dfr", "jtt", "lisa")
LATE = 200  # a step at which every penalty counts


def training(method: str, name: str, steps: int, rate: float, rows: int = ROWS) -> Training:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, FEATURES))
    signal = x @ rng.normal(size=FEATURES) + rng.normal(size=rows)
    classes = method in CLASSIFICATION
    order = np.argsort(np.arange(rows) % ENVIRONMENTS, kind="stable")
    y = torch.tensor(signal[order] > 0).long() if classes else torch.tensor(signal[order]).float()
    sizes = np.bincount(np.arange(rows) % ENVIRONMENTS).tolist()
    net = model(WIDTHS[name], FEATURES, 2 if classes else 1)
    return Training(net, torch.tensor(x[order]).float(), y, sizes, steps, rate)


def fit(method: str, of: Training) -> None:
    if method in WHOLE:
        WHOLE[method](of)
    elif method in DIRECTIONS:
        by_direction(of, DIRECTIONS[method])
    else:
        descend(of, LOSSES[method])


def milliseconds(method: str, name: str, steps: int, trainings: int) -> float:
    fit(method, training(method, name, 3, 1e-3))  # warm
    made = [training(method, name, steps, float(rate)) for rate in np.geomspace(1e-3, 1e-2, trainings)]
    started = time.process_time()
    for of in made:
        fit(method, of)
    return 1000 * (time.process_time() - started) / trainings / steps


def load(net: torch.nn.Sequential, parameters: torch.Tensor) -> None:
    """Parameters as packs have them: biases behind the weights of each unit, after the first layer of each layer."""
    linears = [layer for layer in net if isinstance(layer, torch.nn.Linear)]
    sizes = [layer.weight.numel() + layer.bias.numel() for layer in linears]
    with torch.no_grad():
        for depth, (layer, piece) in enumerate(zip(linears, parameters.split(sizes), strict=True)):
            if depth == 0:
                rows = piece.view(layer.out_features, -1)
                weight, bias = rows[:, :-1], rows[:, -1]
            else:
                weight, bias = piece[: layer.weight.numel()].view_as(layer.weight), piece[layer.weight.numel() :]
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)


def value(method: str, name: str, steps: int, parameters: torch.Tensor, rows: int) -> float:
    """The loss, or the length of a direction, at a late step that follows the first; what is drawn is all rows."""
    of = training(method, name, steps, 1e-2, rows)
    of.sample = rows
    size = sum(parameter.numel() for parameter in of.net.parameters())
    load(of.net, parameters[:size])
    if method in DIRECTIONS:
        return float(DIRECTIONS[method](of).norm())
    if method == "dann":
        of.steps = 0
        WHOLE[method](of)  # makes the discriminator
        load(of.state["discriminator"], parameters[size:])
    LOSSES[method](of)
    of.step = LATE
    return float(LOSSES[method](of))


def main(what: str, name: str, steps: int, *rest: str) -> None:
    torch.set_num_threads(1)
    if what == "time":
        trainings, *methods = rest
        found = {method: milliseconds(method, name, steps, int(trainings)) for method in methods}
    else:
        given = torch.load(rest[0])
        found = {method: value(method, name, steps, own, given["rows"]) for method, own in given["parameters"].items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
