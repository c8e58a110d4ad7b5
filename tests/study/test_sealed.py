"""What a method can see: training rows, and labels if it needs them; of test data nothing, wherever it looks."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oodbench
from oodbench import Dataset, Environment, Method, TrainingRows
from oodbench.errors import BrokenPlugin, TrainingFailed


@pytest.fixture(autouse=True)
def _workers_get_this_module(ray_address: str) -> None:
    """Workers cannot import a test module: its classes travel by value."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def run(method: Any, dataset: Any = "selection_bias", **more: Any) -> oodbench.Result:
    settings = {"majority": 200, "minority": 40, "test_rows": 50} if dataset == "selection_bias" else {}
    return oodbench.run(method, dataset, **{"settings": settings, "trials": 3, "seeds": 2, **more})


@dataclass(frozen=True)
class Marked(Dataset):
    """Rows filled with one number per part, so that their presence in a process's memory can be told."""

    task = "regression"

    def _rows(self, seed: int, part: str) -> list[Environment]:
        return [Environment(part, np.full((400, 4), marker(part)), self.rng(seed, part).normal(size=400))]

    def train(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "train")

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "validation")

    def test(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "test")


def marker(part: str) -> float:
    return 1e5 + sum(part.encode()) / 997


def longest_run_in_memory(value: float) -> int:
    """The longest row of this number anywhere in this process's memory, the shared object store included."""
    longest = 0
    with Path("/proc/self/maps").open() as maps, Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for line in maps:
            addresses, permissions, _, _, inode, *path = line.split()
            shared = bool(path) and ("/dev/shm" in path[0] or "plasma" in path[0])
            if not permissions.startswith("r") or (inode != "0" and not shared) or "[v" in line:
                continue
            start, stop = (int(address, 16) for address in addresses.split("-"))
            for offset in range(start, stop, 1 << 24):
                try:
                    memory.seek(offset)
                    chunk = memory.read(min(1 << 24, stop - offset))
                except (OSError, OverflowError):
                    break
                for shift in (0, 4):
                    numbers = np.frombuffer(chunk[shift : shift + (len(chunk) - shift) // 8 * 8], "<f8")
                    hits = np.flatnonzero(numbers == value)
                    if len(hits):
                        breaks = np.flatnonzero(np.diff(hits) != 1)
                        edges = np.concatenate([[-1], breaks, [len(hits) - 1]])
                        longest = max(longest, int(np.diff(edges).max()))
    return longest


class LooksEverywhere(Method):
    """Searches the worker's memory for the rows of every part."""

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> Any:
        found = {part: longest_run_in_memory(marker(part)) for part in ("train", "validation", "test")}
        raise TrainingFailed(f"found {found['train']} {found['validation']} {found['test']} end")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/mem")
def test_no_test_array_reaches_a_search_worker(tmp_path: Path) -> None:
    result = run(LooksEverywhere, Marked, directory=tmp_path, seeds=1)
    (reason,) = result.failures.values()
    train, validation, test = (int(number) for number in reason.split("found ")[1].split(" end")[0].split())
    assert train >= 1600  # the search finds what is there: 400 rows x 4 features
    assert validation >= 1600
    assert test < 10


class PeeksAtTest(Method):
    """Makes the dataset by itself and asks it for test data."""

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> Any:
        from oodbench_datasets.selection_bias import SelectionBias

        return SelectionBias().test(0)


def test_a_method_that_opens_the_test_data_fails(tmp_path: Path) -> None:
    result = run(PeeksAtTest, directory=tmp_path)
    (reason,) = result.failures.values()
    assert "test environments are sealed while a search runs" in reason


class NeedsTest(Method):
    needs = {"test"}

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> Any: ...


def test_a_method_that_asks_for_test_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokenPlugin, match="needs test, but a method can need only environments"):
        run(NeedsTest, directory=tmp_path)
