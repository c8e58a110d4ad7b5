"""SIGTERM and SIGHUP at many moments from the first second on, to the run alone, to its group, and to every process
that it started, as terminals, Kubernetes and SLURM send them. `tox -e faults` runs this."""

from __future__ import annotations

import random
import signal
import sys
from pathlib import Path

import pytest

from stopping import GONE_SECONDS, stop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.parametrize("whom", ["process", "group", "all"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_every_signal_ends_a_run_in_order(tmp_path: Path, number: signal.Signals, whom: str) -> None:
    draw = random.Random(f"{number} {whom}")
    moments = [("", 0.0, 2.0), ("making the data", 0.0, 1.0), ("starting Ray", 0.0, 3.0), ("starting Ray", 3.0, 9.0)]
    for place, (after, least, most) in enumerate(moments):
        delay = round(draw.uniform(least, most), 2)
        stopped = stop(tmp_path / str(place), number, whom, after, delay)
        print(
            f"{number.name} to {whom}, {delay} s after {after or 'the start'!r}: "
            f"exit code {stopped.code}, all gone after {stopped.seconds:.1f} s"
        )
        assert (stopped.processes, stopped.files) == ([], []), stopped.said
        assert stopped.seconds < GONE_SECONDS
        if stopped.before_it_began:
            continue
        assert stopped.code == 130, stopped.said
        assert "Traceback" not in stopped.said
        assert stopped.said.endswith("The same command continues from there.\n")
