"""The other way: one training after the other, as one would write it with torch alone. Prints the seconds it took.

A process of its own, so that what packs do to their process does not help here.

    python eager.py erm|srm linear|mlp TRAININGS
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

ROWS, FEATURES, STEPS = 2200, 10, 2000
ALPHA0, PENALTY, EXPLORE_EVERY = 0.1, 0.1, 20


def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, FEATURES))
    return x, x @ rng.normal(size=FEATURES) + rng.normal(size=ROWS)


def model(name: str) -> torch.nn.Sequential:
    if name == "linear":
        return torch.nn.Sequential(torch.nn.Linear(FEATURES, 1, bias=False))
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 20), torch.nn.ReLU(), torch.nn.Linear(20, 10), torch.nn.ReLU(), torch.nn.Linear(10, 1)
    )


def worst(representation: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The rows of SRM's worst sub-population, with both mechanisms fitted by least squares."""
    padded = torch.cat([representation, torch.ones(ROWS, 1)], 1)

    def losses(rows: torch.Tensor) -> torch.Tensor:
        fitted = torch.linalg.lstsq(padded[rows], y[rows].unsqueeze(1), driver="gelsd").solution
        return (padded @ fitted).squeeze(1).sub(y).square()

    size = int(ALPHA0 * ROWS)
    of_all = losses(torch.arange(ROWS))
    return (of_all - losses(of_all.topk(size).indices)).topk(size).indices


def main(method: str, name: str, trainings: int) -> None:
    torch.set_num_threads(1)
    x, y = (torch.tensor(array, dtype=torch.float32) for array in problem())
    started = time.perf_counter()
    for rate in np.geomspace(1e-3, 1e-1, trainings):
        net = model(name)
        optimizer = torch.optim.Adam(net.parameters(), lr=float(rate))
        for step in range(STEPS):
            if method == "srm" and step % EXPLORE_EVERY == 0:
                with torch.no_grad():
                    part = worst(net[:-1](x), y)
            optimizer.zero_grad()
            losses = (net(x).squeeze(-1) - y).square()
            objective = losses.mean()
            if method == "srm":
                risk = losses[part].mean()
                (gap,) = torch.autograd.grad(objective - risk, net[0].weight, create_graph=True)
                objective = (objective + risk) / 2 + PENALTY * gap.square().mean()
            objective.backward()
            optimizer.step()
    print(time.perf_counter() - started)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
