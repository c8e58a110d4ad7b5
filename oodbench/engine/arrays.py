"""Large arrays in files without a name: the system keeps in memory what is in use, and takes the room back if need be.

The files are in the temporary directory (`TMPDIR`) and deleted as soon as they are made: only this process can read
them, and they are gone with it, however it ends.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oodbench.errors import Notice

FILED_BYTES = 64 << 20  # smaller arrays stay in memory
BLOCK = bytes(1 << 20)


def make_room(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array to be filled: in a file where it is large, unless the disk has no room for it."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size >= FILED_BYTES:
        try:
            with tempfile.TemporaryFile(prefix="oodbench-rows-") as file:
                _reserve(file.fileno(), size)
                return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)
        except OSError as error:
            warnings.warn(
                f"rows of {size / 1e9:.1f} GB stay in memory: {tempfile.gettempdir()} cannot hold them "
                f"({error.strerror or error}). Set TMPDIR to a folder on a disk with more room",
                Notice,
                stacklevel=2,
            )
    return np.empty(shape, dtype)


def put_together(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The rows of several arrays, one after the other."""
    shape = (sum(map(len, arrays)), *arrays[0].shape[1:])
    return np.concatenate(arrays, out=make_room(shape, np.result_type(*arrays)))


def _reserve(descriptor: int, size: int) -> None:
    """A disk that is full says so here; written to through the map, it would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    with open(descriptor, "wb", closefd=False) as file:
        for start in range(0, size, len(BLOCK)):
            file.write(BLOCK[: size - start])
