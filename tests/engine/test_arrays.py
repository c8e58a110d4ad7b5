from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oodbench import Environment
from oodbench.engine import arrays
from oodbench.engine.arrays import make_room, put_together
from oodbench.errors import Notice


@pytest.fixture
def filed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Arrays of 1 kB and more are in files."""
    monkeypatch.setattr(arrays, "FILED_BYTES", 1000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def is_mapped(array: Any) -> bool:
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return isinstance(array, mmap.mmap)


def test_large_arrays_are_in_files_that_nobody_else_can_open(filed: Path) -> None:
    small, large = make_room((10,), np.float64), make_room((100, 20), np.float64)
    assert (is_mapped(small), is_mapped(large)) == (False, True)
    large[:] = 1.5
    assert large.sum() == 3000
    assert list(filed.iterdir()) == []


def test_rows_that_are_put_together_are_the_same_in_a_file(filed: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    together = put_together([x[:100], x[100:]])
    assert is_mapped(together)
    assert np.array_equal(together, x)
    assert put_together([np.arange(3), np.ones(2)]).dtype == np.float64


def test_a_full_disk_is_said_and_the_rows_stay_in_memory(filed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, start: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.warns(Notice, match=r"stay in memory: .* \(No space left on device\).*TMPDIR"):
        assert not is_mapped(make_room((1000,), np.float64))


def test_pooled_environments_are_divided_without_a_copy(filed: Path) -> None:
    rng = np.random.default_rng(0)
    parts = [Environment(name, rng.normal(size=(50, 3)), rng.integers(0, 2, 50)) for name in ("a", "b")]
    pooled = Environment.pooled("training", parts)
    for part, view in zip(parts, pooled.divide(parts), strict=True):
        assert view.name == part.name
        assert np.array_equal(view.x, part.x)
        assert np.array_equal(view.y, part.y)
        assert np.shares_memory(view.x, pooled.x)
        assert not view.x.flags.writeable
