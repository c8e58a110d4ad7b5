"""A run and its board on a full device, and on one that shows ASCII only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SETTINGS = ["--set", "majority=60", "--set", "minority=20", "--set", "test_rows=20"]
RUN = [
    "run", "--method", "erm", "--method", "fdro", "--dataset", "selection_bias", "--trials", "1", "--seeds", "6",
    *SETTINGS, "--set-training", "steps=5",
]  # fmt: skip
BOARD = ["leaderboard", "selection_bias", *SETTINGS]


def test_a_board_in_ascii(cold_cli: Callable[..., Any], ray_address: str) -> None:
    """Boxes are of +, - and |, ± is +-, and the columns stand below each other."""
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    ran = cold_cli(*RUN, "--address", ray_address, environment=ascii_only)
    formats: list[list[str]] = [["--ledger"], ["--format", "md"], ["--format", "latex"]]
    boards = [cold_cli(*BOARD, *format, environment=ascii_only) for format in formats]
    for done in (ran, *boards):
        assert (done.code, (done.out + done.err).isascii(), "Traceback" in done.err) == (0, True, False), done.err
    assert " +- 0." in ran.out
    table = [line for line in ran.out.splitlines() if line.startswith(("|", "+"))]
    assert len({len(line) for line in table}) == 1
    assert len(table) > 4


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_run_on_a_full_device(ray_address: str, tmp_path: Path, stream: str) -> None:
    """What it did is recorded; without standard error it goes on."""
    for arguments in ([*RUN, "--address", ray_address], BOARD, [*BOARD, "--json"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "oodbench", *arguments], cwd=tmp_path, timeout=120, text=True,
                stdout=full if stream == "stdout" else subprocess.PIPE,
                stderr=full if stream == "stderr" else subprocess.PIPE,
            )  # fmt: skip
        if stream == "stderr":
            assert (done.returncode, "erm" in done.stdout) == (0, True)
        else:
            message = "error: standard output cannot be written: No space left on device."
            assert (done.returncode, done.stderr.splitlines()[-2]) == (1, message), done.stderr
