"""Bad input and damaged files again, with many more values."""

from __future__ import annotations

import subprocess
import sys

import pytest

from places import TESTS


@pytest.mark.parametrize("name", ["test_bad_input.py", "test_damaged_files.py"])
def test_many_more_bad_values(name: str) -> None:
    tests = TESTS / "cli" / name
    command = [sys.executable, "-m", "pytest", "-q", "-s", str(tests), "--hypothesis-profile", "long"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=7200, cwd=tests.parent.parent, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
    print(f"\n{name}:", *(line for line in done.stdout.splitlines() if "mutations of" in line), sep="\n")
