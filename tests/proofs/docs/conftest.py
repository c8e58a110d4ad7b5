"""Where the commands of the documents run: shells that find oodbench, pip and pytest, and one Ray cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from places import ROOT
from tally import TALLY, Tally

TOOLS = {"oodbench": "-m oodbench", "pip": "-m pip", "pytest": "-m pytest -p no:cacheprovider"}


@dataclass(frozen=True)
class Place:
    """The working directory of a user who has installed oodbench, and has no data files."""

    folder: Path
    environment: dict[str, str]


@pytest.fixture(scope="session")
def ray_cpus() -> int:
    """As many as a command of the documents asks for."""
    return 2


@pytest.fixture(scope="session")
def make_place(
    make_python: Callable[[], Path], ray_address: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Place]:
    def make() -> Place:
        python, folder = make_python(), tmp_path_factory.mktemp("page")
        for tool, module in TOOLS.items():
            script = python.parent / tool
            script.write_text(f'#!/bin/sh\nexec "{python}" {module} "$@"\n')
            script.chmod(0o755)
        (folder / "docs").symlink_to(ROOT / "docs")
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        return Place(
            folder,
            {
                **os.environ,
                **{
                    f"GIT_{who}_{what}": "docs@localhost"
                    for who in ("AUTHOR", "COMMITTER")
                    for what in ("NAME", "EMAIL")
                },
                "PATH": f"{python.parent}:{os.environ['PATH']}",
                "RAY_ADDRESS": ray_address,  # what `--address auto` finds
                "OODBENCH_DATA": str(folder / "data"),
            },
        )

    return make


@pytest.fixture(scope="session")
def tally() -> Tally:
    return TALLY


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    total = ", ".join(f"{count} {kind}" for kind, count in TALLY.ran.items())
    terminalreporter.section("commands of the documents")
    terminalreporter.line(f"run: {total}; not run: {len(TALLY.not_run)}")
    for command, why in TALLY.not_run.items():
        terminalreporter.line(f"  {command.splitlines()[0][:70]}: {why}")
