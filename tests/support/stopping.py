"""A run on a Ray of its own that is asked to end by a signal, at some moment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from family import family

RUN = [
    sys.executable, "-m", "oodbench", "run", "-m", "erm", "-d", "selection_bias", "--trials", "60", "--seeds", "4",
    "--set", "majority=200", "--set", "minority=40", "--set", "test_rows=50", "--set-training", "steps=4000",
]  # fmt: skip
GONE_SECONDS = 10


@dataclass(frozen=True)
class Stopped:
    code: int
    said: str  # on standard error
    seconds: float  # from the signal until all of its processes were gone
    processes: list[str]  # that were still there then
    files: list[str]  # in the temporary directory

    @property
    def before_it_began(self) -> bool:
        """While Python was still loading the program."""
        return self.code < 0 and not self.said


def _heed_hangups() -> None:
    """These tests may run under nohup, which runs inherit and respect."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def stop(directory: Path, number: signal.Signals, whom: str, after: str, delay: float) -> Stopped:
    """Signal `whom` so many seconds after the run said this: the process, its group, or all that it started, too."""
    directory.mkdir(exist_ok=True)
    log = directory / "log"
    with tempfile.TemporaryDirectory(prefix="t-") as temporary, log.open("w") as errors:  # sockets need a short path
        run = subprocess.Popen(
            RUN,
            cwd=directory,
            env={**os.environ, "TMPDIR": temporary},
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            preexec_fn=_heed_hangups,
        )
        while after not in log.read_text():
            assert run.poll() is None, log.read_text()
            time.sleep(0.01)
        time.sleep(delay)
        targets = [int(process.name) for process in family(directory)] if whom == "all" else [run.pid]
        for pid in targets:
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if whom == "group" else os.kill)(pid, number)
        started = time.monotonic()
        while (run.poll() is None or family(directory)) and time.monotonic() < started + GONE_SECONDS:
            time.sleep(0.02)
        seconds = time.monotonic() - started
        left = [process.joinpath("cmdline").read_text() for process in family(directory)]
        for process in family(directory):
            os.kill(int(process.name), signal.SIGKILL)
        files = [path.name for path in Path(temporary).iterdir()]
        return Stopped(run.wait(), log.read_text(), seconds, left, files)
