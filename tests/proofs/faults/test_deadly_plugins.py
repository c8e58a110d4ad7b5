"""Methods that end their process, segfault or are killed: recorded as failed, while the others go on unchanged."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from places import DISTRIBUTIONS as ZOO

DEADLY = ("ends_its_process", "segfaults", "is_killed")


def run(python: Path, folder: Path, *methods: str) -> tuple[int, dict[str, Any], str]:
    several = [part for method in methods for part in ("-m", method)]
    small = ["--set", "majority=60", "--set", "minority=20", "--set", "test_rows=20", "--set-training", "steps=20"]
    command = [str(python), "-m", "oodbench", "run", *several, "-d", "selection_bias", *small, "--trials", "2"]
    folder.mkdir()
    done = subprocess.run(
        [*command, "--seeds", "2", "--json"], capture_output=True, text=True, timeout=600, cwd=folder, check=False
    )
    (board,) = json.loads(done.stdout)
    return done.returncode, {row["method"].partition(" ")[0]: row for row in board["rows"]}, done.stderr


def test_a_process_that_ends_takes_nobody_with_it(
    python: Path, pip_install: Callable[..., None], tmp_path: Path
) -> None:
    pip_install(ZOO / "deadly")
    code, rows, err = run(python, tmp_path / "together", "erm", *DEADLY)
    assert code == 1
    assert "Traceback" not in err
    for name in DEADLY:
        assert "no training finished" in rows[name]["failure"]
        assert rows[name]["failed_trainings"] == 2
        assert f"failed {name}" in err
    code, alone, _ = run(python, tmp_path / "alone", "erm")
    assert code == 0
    for metric, cell in alone["erm"]["metrics"].items():
        assert rows["erm"]["metrics"][metric]["value"] == cell["value"]
