"""The other way for many rows: one training in shuffled batches, as one would write it with torch alone. Prints the
milliseconds of CPU time that a step takes.

    python eager_batches.py WIDTHS ROWS FEATURES STEPS      (WIDTHS: linear, or hidden units such as 20,10)
"""

from __future__ import annotations

import itertools
import sys
import time

import numpy as np
import torch

BATCH = 2048


def problem(rows: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that a linear model tells apart, with noise."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, features), dtype=np.float32)
    signal = x @ rng.standard_normal(features, dtype=np.float32) / np.sqrt(features)
    return x, (signal + rng.standard_normal(rows, dtype=np.float32) > 0).astype(np.int64)


def model(widths: str, features: int) -> torch.nn.Sequential:
    sizes = [features, *(() if widths == "linear" else map(int, widths.split(","))), 2]
    layers: list[torch.nn.Module] = []
    for inputs, units in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(inputs, units), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def main(widths: str, rows: int, features: int, steps: int) -> None:
    torch.set_num_threads(1)
    x, y = (torch.from_numpy(array) for array in problem(rows, features))
    net = model(widths, features)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    size = min(BATCH, rows)
    batches: list[torch.Tensor] = []
    started = time.process_time()
    for _ in range(steps):
        if not batches:
            batches = list(torch.randperm(rows)[: rows // size * size].split(size))
        places = batches.pop()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x[places]), y[places]).backward()
        optimizer.step()
    print(1000 * (time.process_time() - started) / steps)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
