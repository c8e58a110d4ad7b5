"""Workers that take more memory than their node has. Ray watches that here with a limit far below the machine's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nodes import ray_nodes

ROOM, MEAL = 3.0, 6.0  # GB: what is free on the node, and what a hungry training takes

METHODS = '''
import contextlib, json, sys, time
from pathlib import Path
import numpy as np
import oodbench
from oodbench import LossMethod, Uniform

class Weighted(LossMethod):
    space = {"weight": Uniform(0.0, 1.0, default=0.0)}
    marks = ""

    def loss(self, rows, hp):
        if (hp.weight > 0.8).any():
            self.eat()
        return rows.losses.mean(-1) * (1 + hp.weight)

    def eat(self):
        held = [np.ones(2**27) for _ in range(int(MEAL))]  # 1 GB each, really written
        time.sleep(30)

class Always(Weighted):
    """Every time it is tried."""

class Once(Weighted):
    def eat(self):
        with contextlib.suppress(FileExistsError):
            (Path(self.marks) / "eaten").touch(exist_ok=False)
            super().eat()

class Never(Weighted):
    def eat(self): ...
'''

RUN = """
Once.marks = sys.argv[2]
result = oodbench.run(
    [Always, Once, Never], "selection_bias", settings={"majority": 100, "minority": 20, "test_rows": 20},
    recipe={"steps": 20}, fix={"weight": [0.0, 1.0], "learning_rate": 0.01, "weight_decay": 0.0}, seeds=1,
    directory=sys.argv[2] + "/record", address=sys.argv[1], **json.loads(sys.argv[3]),
)
studies = {study.label.partition(" ")[0]: study for study in result.leaderboards(mixed=True)[0].studies}
errors = result.results()
print(json.dumps({
    name: {
        "failures": [failure.reason for failure in study.record.failures],
        "failed": [failure.configuration for failure in study.record.failures],
        "errors": list(errors[errors["method"] == study.label]["error"]),
    }
    for name, study in studies.items()
}))
"""


def limit() -> str:
    """The share of the machine's memory that Ray lets be used."""
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    sizes = {words[0]: int(words[1]) for words in lines}
    total = sizes["MemTotal:"]
    return f"{(total - sizes['MemAvailable:'] + ROOM * 1e6) / total:.4f}"


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="reads the memory of the machine from /proc")
@pytest.mark.parametrize("search", [{}, {"budget": "10m"}], ids=["packs", "one configuration after another"])
def test_what_takes_too_much_memory_fails_alone(tmp_path: Path, search: dict[str, Any]) -> None:
    script = tmp_path / "hungry.py"
    script.write_text(METHODS.replace("MEAL", str(MEAL)) + RUN)
    with ray_nodes() as nodes:
        watched = {"RAY_memory_usage_threshold": limit(), "RAY_memory_monitor_refresh_ms": "50"}
        nodes.start("head", cpus=2, environment=watched)
        done = subprocess.run(
            [sys.executable, str(script), nodes.address, str(tmp_path), json.dumps(search)],
            capture_output=True, text=True, timeout=900, check=False,
            env={**os.environ, "RAY_AUTH_MODE": "disabled"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    print(f"\n{search or 'packs'}: { ({name: one['failures'] for name, one in found.items()}) }")
    assert found["always"]["failures"] == ["the worker failed 3 times: its node ran out of memory"]
    assert found["always"]["failed"] == [1]
    assert (tmp_path / "eaten").exists()
    assert found["once"]["failures"] == found["never"]["failures"] == []
    assert found["once"]["errors"]


def test_a_machine_without_memory_for_any_worker(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "oodbench", "run", "-m", "erm", "-d", "selection_bias", "--trials", "1"]
    command += ["--seeds", "1"]
    full = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "50"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env={**os.environ, **full}, check=False
    )
    print(f"\nno memory for any worker: exit code {done.returncode}, {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "no training finished; first failure: the worker failed 3 times: its node ran out of memory" in done.stderr
    again = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    assert again.returncode == 0, again.stderr
