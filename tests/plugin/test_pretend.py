"""The pretend GPU counts what is copied and waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from oodbench.plugin.pretend import PretendGpu
from oodbench.plugin.traffic import Traffic

Use = Callable[[Tensor], Any]

SENDS: list[Use] = [
    lambda x: torch.ones(2).to(x.device),
    lambda x: torch.ones(2).to("cuda"),
    lambda x: torch.tensor([1.0, 2.0], device=x.device),
    lambda x: x.new_tensor([1.0, 2.0]),
    lambda x: x[[0, 1]],
    lambda x: x[torch.tensor([0, 1])],
    lambda x: x[:, range(2)],
    lambda x: x.where(x > 0, 0.0),
    lambda x: x.__setitem__(0, torch.ones(3)),
    lambda x: x.__setitem__(x.argmax(0), 1.0),
]
FETCHES: list[Use] = [
    lambda x: x.cpu(),
    lambda x: x.to("cpu"),
    lambda x: x.sum().item(),
    lambda x: float(x.sum()),
    lambda x: int(x.sum()),
    lambda x: bool((x > 0).any()),
    lambda x: [float(part) for part in x.sum(1)[:1]],
    lambda x: x.tolist(),
    lambda x: x.equal(x),
    lambda x: torch.equal(x, x),
    lambda x: 3.0 in x,
]
WAITS: list[Use] = [
    lambda x: x.nonzero(),
    lambda x: torch.where(x > 0),
    lambda x: x[x > 0],
    lambda x: x[x.argmax().clamp(max=1)],
    lambda x: x.masked_select(x > 0),
    lambda x: x.unique(),
    lambda x: torch.unique(x),
    lambda x: x.repeat_interleave((x[0] > 0).long(), 1),
    lambda x: one_hot(x.long()),
    lambda x: torch.linalg.solve(torch.eye(3, device=x.device), x.mT),
    lambda x: torch.linalg.cholesky(torch.eye(3, device=x.device)),
]
QUEUES: list[Use] = [
    lambda x: x.to(x.device),
    lambda x: x[0, 1:] + 3.0 * x[0, :1],
    lambda x: x[:, x.argmax(0)],
    lambda x: x.__setitem__(0, 1.0),
    lambda x: x.masked_fill(x > 0, 0.0),
    lambda x: x.where(x > 0, x),
    lambda x: x.sort().values.gather(1, x.argsort()),
    lambda x: x.repeat_interleave(2, 0),
    lambda x: one_hot(x.long(), 9),
    lambda x: torch.linalg.cholesky_ex(torch.eye(3, device=x.device)).L,
    lambda x: (len(x), x.shape, x.dtype, x.is_floating_point(), x.requires_grad),
    lambda x: torch.ones(2).sum().item(),
]


def counted(use: Use) -> Traffic:
    gpu = PretendGpu()
    with gpu:
        x = torch.arange(6.0).view(2, 3).to("cuda")
        before = gpu.traffic.copy()
        use(x)
    return gpu.traffic.since(before)


@pytest.mark.parametrize(
    ("uses", "to_gpu", "to_cpu", "waits"),
    [(SENDS, 1, 0, 1), (FETCHES, 0, 1, 1), (WAITS, 0, 0, 1), (QUEUES, 0, 0, 0)],
    ids=["sends", "fetches", "waits", "queues"],
)
def test_what_is_counted(uses: list[Use], to_gpu: int, to_cpu: int, waits: int) -> None:
    for place, use in enumerate(uses):
        traffic = counted(use)
        found = traffic.to_gpu.total(), traffic.to_cpu.total(), traffic.waits.total()
        assert found == (to_gpu, to_cpu, waits), (place, traffic)


def test_a_copy_that_does_not_block_does_not_wait() -> None:
    traffic = counted(lambda x: torch.ones(2).to(x.device, non_blocking=True))
    assert (traffic.to_gpu.total(), traffic.waits.total()) == (1, 0)
