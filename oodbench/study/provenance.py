"""Where a result comes from: versions, commit, command, times."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version

from oodbench.study.record import Provenance
from oodbench.study.reproduce import command_for
from oodbench.study.study import Study

VERSIONED = ("oodbench", "torch", "numpy", "pandas", "ray", "mlflow")


def provenance_of(study: Study, started: float) -> Provenance:
    """Of a study that is concluded now; `started` in seconds since the epoch."""
    return Provenance(
        versions={package: version(package) for package in sorted(VERSIONED)},
        python=platform.python_version(),
        git_commit=_git_commit(),
        command=command_for(study),
        started=datetime.fromtimestamp(started, UTC),
        concluded=datetime.now(UTC),
    )


def _git_commit() -> str:
    """The commit of the working directory, if it is one of a repository."""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
