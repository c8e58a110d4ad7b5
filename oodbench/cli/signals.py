"""Signals that ask a command to end are as Ctrl-C, and end it soon."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from oodbench.errors import Interrupted
from oodbench.search.own import remove_folders

STOPPED = Interrupted("stopped. Finished work is kept.\nThe same command continues from there.")
CALLED_BACK = ("importlib", f"{os.sep}logging{os.sep}")
END_SECONDS = 8  # what sent the signal waits a little longer, and then kills


@contextlib.contextmanager
def all_as_ctrl_c() -> Iterator[None]:
    """SIGTERM, which SLURM and Kubernetes send, and SIGHUP, when a terminal closes, are as Ctrl-C. They come to several
    processes and often twice: the first one counts, and the others do not disturb the end."""
    numbers = [signal.SIGTERM, signal.SIGHUP]
    heeded = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]  # nohup has one ignored
    asked = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            return
        if frame is not None and _is_ignored(frame):
            signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
        asked = True
        signal.alarm(0)  # where Ray was just starting, it has set one that aborts
        _end_anyway()
        interrupt = signal.getsignal(signal.SIGINT)  # Ray Tune has its own while it works
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)
        else:  # a shell has commands in the background ignore Ctrl-C
            raise KeyboardInterrupt

    for number in heeded:
        signal.signal(number, stop)
    try:
        yield
    finally:
        asked = True


def _is_ignored(frame: FrameType) -> bool:
    """Whether what is raised here is lost: in callbacks of imports, in code that Cython runs in a module when it is
    imported, and in callbacks of logging around a fork."""
    file = frame.f_code.co_filename
    by_cython = file == "<string>" and frame.f_globals.get("__name__") != "__main__"
    return by_cython or any(name in file for name in CALLED_BACK)


def _end_anyway() -> None:
    """An end in order may take too long: a library that lost the interruption, Ray processes that got the signal too,
    a busy machine. What is finished is on disk at every moment, and Ray's processes end with this one."""

    timer = threading.Timer(END_SECONDS, end_now, [STOPPED])
    timer.daemon = True
    timer.start()


def end_now(stopped: Interrupted) -> NoReturn:
    """Without the interpreter's own end: it waits for threads of libraries that were interrupted, or crashes."""
    remove_folders()
    try:
        print(f"error: {stopped}", file=sys.stderr, flush=True)
        sys.stdout.flush()
    except OSError:  # the terminal is gone
        pass
    finally:
        os._exit(stopped.exit_code)
