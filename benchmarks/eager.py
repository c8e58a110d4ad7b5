"""The other way: one training after the other, as one would write it with torch alone. Prints the seconds it took.

A process of its own, so that what packs do to their process does not help here.

    python eager.py linear|mlp TRAININGS
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

ROWS, FEATURES, STEPS = 2200, 10, 2000


def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, FEATURES))
    return x, x @ rng.normal(size=FEATURES) + rng.normal(size=ROWS)


def model(name: str) -> torch.nn.Module:
    if name == "linear":
        return torch.nn.Linear(FEATURES, 1, bias=False)
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 20), torch.nn.ReLU(), torch.nn.Linear(20, 10), torch.nn.ReLU(), torch.nn.Linear(10, 1)
    )


def main(name: str, trainings: int) -> None:
    torch.set_num_threads(1)
    x, y = (torch.tensor(array, dtype=torch.float32) for array in problem())
    started = time.perf_counter()
    for rate in np.geomspace(1e-3, 1e-1, trainings):
        net = model(name)
        optimizer = torch.optim.Adam(net.parameters(), lr=float(rate))
        for _ in range(STEPS):
            optimizer.zero_grad()
            (net(x).squeeze(-1) - y).square().mean().backward()
            optimizer.step()
    print(time.perf_counter() - started)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
