"""The device of trainings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from oodbench import Mlp, Recipe, Setup, Trainer

FLAGS: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn)


@pytest.fixture(autouse=True)
def tf32_is_on() -> Iterator[None]:
    before = [flags.allow_tf32 for flags in FLAGS]
    for flags in FLAGS:
        flags.allow_tf32 = True
    yield
    for flags, value in zip(FLAGS, before, strict=True):
        flags.allow_tf32 = value


def test_a_gpu_computes_without_tf32() -> None:
    assert Trainer(Setup(Mlp(), Recipe(), "cuda")).device == torch.device("cuda")
    assert not any(flags.allow_tf32 for flags in FLAGS)


def test_the_cpu_changes_no_flag() -> None:
    assert Trainer(Setup(Mlp(), Recipe())).device == torch.device("cpu")
    assert all(flags.allow_tf32 for flags in FLAGS)
