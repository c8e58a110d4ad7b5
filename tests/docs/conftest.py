"""Where the commands of the documents run: a shell that finds oodbench, pip and pytest, and one Ray cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from tally import TALLY, Tally

TOOLS = {"oodbench": "-m oodbench", "pip": "-m pip", "pytest": "-m pytest -p no:cacheprovider"}


@pytest.fixture(scope="session")
def tally() -> Tally:
    return TALLY


@pytest.fixture(scope="session")
def surroundings(python: Path, ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a user who has installed oodbench, and has no data files."""
    for tool, module in TOOLS.items():
        script = python.parent / tool
        script.write_text(f'#!/bin/sh\nexec "{python}" {module} "$@"\n')
        script.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "RAY_ADDRESS": ray_address,  # what `--address auto` finds
        "OODBENCH_DATA": str(tmp_path_factory.mktemp("data")),
        **{f"GIT_{role}_{what}": "docs@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    total = ", ".join(f"{count} {kind}" for kind, count in TALLY.ran.items())
    terminalreporter.section("commands of the documents")
    terminalreporter.line(f"run: {total}; not run: {len(TALLY.not_run)}")
    for command, why in TALLY.not_run.items():
        terminalreporter.line(f"  {command.splitlines()[0][:70]}: {why}")
