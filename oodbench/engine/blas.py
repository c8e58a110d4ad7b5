"""numpy's own threads: one, while small products are computed. Products of two threads differ from those of one."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_limits: list[Any] = []  # one for each that is inside; the first has what was there before


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """For all threads of the process: the last one that leaves puts back what the first one found."""
    with _lock:
        _limits.append(_limits[0] if _limits else _libraries().limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                limit.restore_original_limits()


@functools.cache
def _libraries() -> Any:
    """Those of numpy; torch, which may come later, computes here with the threads that it is told."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(internal_api="openblas")
