"""Ctrl-C in the middle of a search: what is saved, and the same command continues to the same table."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Cli = Callable[..., Any]


def test_a_stopped_run_continues_to_the_same_table(cli: Cli, ray_address: str, tmp_path: Path) -> None:
    command = [
        "run", "--method", "erm", "--dataset", "selection_bias", "--trials", "16", "--seeds", "16", "--json",
        "--set-training", "steps=500", "--address", ray_address,
    ]  # fmt: skip
    running = subprocess.Popen(
        [sys.executable, "-m", "oodbench", *command],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    seen = []
    for line in running.stderr:
        seen.append(line)
        if " of 256 trainings" in line:
            break
    running.send_signal(signal.SIGINT)
    _, rest = running.communicate(timeout=60)
    assert running.returncode == 130, "".join(seen) + rest
    assert re.search(r"error: stopped\. [1-4] of 4 packs are saved", rest)
    assert "The same command continues from there." in rest
    again = cli(*command)
    assert again.code == 0, again.err
    assert "finished in an earlier run" in again.err
    (tmp_path / "other").mkdir()
    undisturbed = cli(*command, cwd=tmp_path / "other")
    numbers = [[(row["method"], row["metrics"]) for row in done.json()[0]["rows"]] for done in (again, undisturbed)]
    assert numbers[0] == numbers[1]
