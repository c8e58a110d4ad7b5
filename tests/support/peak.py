"""The memory of a worker, as Linux counts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oodbench.search.shipping import Shipment
from oodbench.study.pack import Pack
from oodbench.study.study import Study


def measure_pack(study: Study, pack: Pack) -> tuple[int, int]:
    """Bytes of a new worker before the rows of the pack, and at most while it trains and scores it."""
    import ray

    shipment = Shipment()
    data = {seed: shipment.add(study.search_data(seed, pack.without), study.method.shares_rows) for seed in pack.seeds}
    train = ray.remote(max_calls=1)(_training())
    before, peak = ray.get(train.remote(study.method, pack, study.setup, data, shipment.references))
    return int(before), int(peak)


def _training() -> Callable[..., tuple[int, int]]:
    """Being local, the function is sent by value: workers do not find this file."""

    def train(method: Any, pack: Pack, setup: Any, data: dict[int, bytes], arrays: list[Any]) -> tuple[int, int]:
        from pathlib import Path

        import torch

        from oodbench.search.shipping import unpack
        from oodbench.search.trainable import prepare
        from oodbench.search.worker import run_pack

        def status(name: str) -> int:
            (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)]
            return 1024 * int(line.split()[1])

        prepare(1)
        ones = torch.ones(1000, 1000, requires_grad=True)
        # what torch loads when it first computes
        ones.mm(ones).logsumexp(1).sum().backward()  # type: ignore[no-untyped-call]
        ones.grad = None
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
        before = status("VmRSS")
        result = run_pack(method, pack, {seed: unpack(content, arrays) for seed, content in data.items()}, setup)
        assert not result.failures, result.failures
        return before, status("VmHWM")

    return train
