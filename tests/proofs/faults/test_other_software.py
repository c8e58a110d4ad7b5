"""A node whose environment has another version of oodbench, as one has that was forgotten in an update."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import oodbench
from nodes import ray_nodes

OTHER = "99.9"


def install_other_version(python: Path) -> None:
    """A copy of oodbench that says it is another version, before the project on the environment's path."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.check_output([python, "-c", code], text=True).strip())
    copied = shutil.copytree(Path(oodbench.__file__).parent, site / "oodbench")
    said = copied / "version.py"
    said.write_text(said.read_text().replace(oodbench.__version__, OTHER))
    info = site / f"oodbench-{OTHER}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: oodbench\nVersion: {OTHER}\n")


def test_a_node_with_another_version_is_named_before_work_starts(python: Path, tmp_path: Path) -> None:
    install_other_version(python)
    with ray_nodes() as nodes:
        nodes.start("head", cpus=1)
        nodes.start("forgotten", cpus=1, python=python)
        command = [sys.executable, "-m", "oodbench", "run", "-m", "erm", "-d", "selection_bias"]
        done = subprocess.run(
            [*command, "--address", nodes.address],
            capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False,
            env={**os.environ, "RAY_AUTH_MODE": "disabled"},
        )  # fmt: skip
    said = done.stderr.strip().splitlines()[-2:]
    print(f"\nexit code {done.returncode}: {said[0]}")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    here = importlib.metadata.version("oodbench")
    assert re.search(rf"node \S+ has oodbench {OTHER} \(here {here}\)", said[0])
    assert "more differ" not in said[0]
    assert said[1] == "Install the same versions on every node, for example with one constraints file."
