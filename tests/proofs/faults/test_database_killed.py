"""The driver killed with -9 at 20 moments while it makes the embedded database; each time the same command continues.

The moments are told by the size of the file that is being made, since the time it takes depends on the machine.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parcels import database_size, kill_in_creation, put

KILLS = 20


def test_every_kill_in_the_making_ends_in_the_same_record(
    tmp_path: Path, cli: Callable[..., Any], count_runs: Callable[..., Any]
) -> None:
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    put(undisturbed, "erm")
    subprocess.run([sys.executable, "-m", "oodbench", "sync", "--directory", str(undisturbed)], check=True)
    whole, expected = database_size(undisturbed), count_runs(undisturbed)
    board = ["leaderboard", "selection_bias", "--format", "csv", "--directory"]
    table = cli(*board, str(undisturbed)).out
    inside = 0
    for kill in range(KILLS):
        directory = tmp_path / str(kill)
        directory.mkdir()
        put(directory, "erm")
        size = kill_in_creation(directory, int(whole * 0.98 * (kill + 0.5) / KILLS))
        inside += not (directory / "mlflow.db").exists()
        again = cli("sync", "--directory", str(directory))
        assert (again.code, again.err) == (0, ""), (size, again.err)
        assert count_runs(directory) == expected
        assert cli(*board, str(directory)).out == table
        assert [path.name for path in directory.glob("mlflow.db*")] == ["mlflow.db"]
        print(f"killed with {size:,} of {whole:,} bytes made: the same record")
    print(f"{KILLS} kills, {inside} of them before the database was in its place: all end in the same record")
    assert inside >= KILLS - 2
