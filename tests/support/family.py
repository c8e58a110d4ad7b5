"""A command and all that it started, found by their working directory."""

from __future__ import annotations

import os
from pathlib import Path


def family(directory: Path) -> list[Path]:
    """Their folders in /proc."""
    members = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.joinpath("cwd").resolve() == directory and int(process.name) != os.getpid():
                members.append(process)
        except OSError:
            continue
    return members
