"""What a scheduler or a closing terminal sends ends a run as Ctrl-C does. More moments: tests/proofs/faults."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stopping import stop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_a_run_that_is_told_to_end_while_ray_starts_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    stopped = stop(tmp_path, signal.SIGTERM, "all", after="starting Ray", delay=2)
    assert stopped.code == 130, stopped.said
    assert "error: stopped. " in stopped.said
    assert stopped.said.endswith("The same command continues from there.\n")
    assert stopped.processes == []
    assert stopped.files == []


NOHUP = """
import os, signal
from oodbench.cli.signals import all_as_ctrl_c
with all_as_ctrl_c():
    os.kill(os.getpid(), signal.SIGHUP)
    print("goes on")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell starts commands in the background
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        os.kill(os.getpid(), signal.SIGTERM)  # the second one disturbs nothing
        print("ends")
"""


def test_nohup_is_respected_and_the_background_is_no_refuge() -> None:
    done = subprocess.run(
        ["nohup", sys.executable, "-c", NOHUP], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["goes on", "ends"]


LOST = """
import time
from oodbench.cli.signals import all_as_ctrl_c
code = compile("import os; os.kill(os.getpid(), 15)", "<string>", "exec")
with all_as_ctrl_c():
    try:
        try:
            exec(code, {"__name__": "collections.abc"})
        except KeyboardInterrupt:
            print("lost")
        time.sleep(30)
    except KeyboardInterrupt:
        print("ends")
"""


def test_a_signal_waits_while_cython_runs_code_in_a_module_that_loses_it() -> None:
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.splitlines() == ["ends"]
