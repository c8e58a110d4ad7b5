"""Disks that are full or read-only, really mounted; tests/driver has the short forms, which anybody can run."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import oodbench
from oodbench.errors import Unwritable

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
TINY = {"majority": 200, "minority": 40, "test_rows": 50}


def run(directory: Path) -> oodbench.Result:
    return oodbench.run("erm", "selection_bias", settings=TINY, trials=3, seeds=2, directory=directory)


def test_a_full_disk_is_said_in_two_lines_and_a_second_try_works(ray_address: str, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=64k") as small:
        (small / "ballast").write_bytes(bytes(56 * 1024))
        with pytest.raises(Unwritable, match="No space left on device.\nFree some space") as raised:
            run(small)
        assert str(raised.value).count("\n") == 1
        assert not [path for path in small.rglob("*") if path.is_file() and path.name.startswith(".")]
        (small / "ballast").unlink()
        subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
        assert run(small).leaderboard().rows[0].cells["mean_error"].value is not None


def test_a_read_only_directory_is_said_in_two_lines(ray_address: str, tmp_path: Path) -> None:
    with mounted(tmp_path / "fixed", "ro") as fixed, pytest.raises(Unwritable, match="Read-only file system") as raised:
        run(fixed)
    assert str(raised.value).count("\n") == 1


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot mount a small disk here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
