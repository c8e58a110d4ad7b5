"""Bad input again, with many more values."""

from __future__ import annotations

import subprocess
import sys

from places import TESTS


def test_many_more_bad_values() -> None:
    tests = TESTS / "cli" / "test_bad_input.py"
    command = [sys.executable, "-m", "pytest", "-q", str(tests), "--hypothesis-profile", "long"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=7200, cwd=tests.parent.parent, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
