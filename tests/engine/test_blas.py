"""numpy's threads while small products are computed, and after."""

from __future__ import annotations

import threading

from threadpoolctl import ThreadpoolController

from oodbench.engine.blas import one_blas_thread


def threads() -> set[int]:
    return {library.num_threads for library in ThreadpoolController().select(internal_api="openblas").lib_controllers}


def test_who_leaves_last_puts_back_what_the_first_one_found() -> None:
    before, entered, leave = threads(), threading.Event(), threading.Event()

    def overlap() -> None:
        with one_blas_thread():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=overlap)
    with one_blas_thread():
        other.start()
        assert entered.wait(10)
        assert threads() == {1}
    assert threads() == {1}  # the other one is still inside
    leave.set()
    other.join()
    assert threads() == before
    with one_blas_thread():
        assert threads() == {1}
    assert threads() == before
