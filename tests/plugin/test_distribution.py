"""A third party's distribution, installed for real on top of the project, then listed, checked and run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from places import DISTRIBUTIONS

PLUGIN = DISTRIBUTIONS / "plugin"


@pytest.fixture(scope="module")
def installed(python: Path, pip_install: Callable[..., None]) -> Path:
    pip_install(PLUGIN)
    return python


def oodbench(python: Path, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "oodbench", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, cwd=cwd, check=False)


def test_it_is_listed(installed: Path, tmp_path: Path) -> None:
    listed = {entry["name"]: entry for entry in json.loads(oodbench(installed, "list", "--json", cwd=tmp_path).stdout)}
    for name in ("risk_spread", "mean_rule", "tilted"):
        assert listed[name]["source"] == "oodbench-example"
        assert listed[name]["broken"] is None
    assert listed["erm"]["source"] == "oodbench"


def test_it_is_checked(installed: Path, tmp_path: Path) -> None:
    done = oodbench(installed, "check", "oodbench-example", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok     method risk_spread: gives the same result alone or in a pack" in done.stdout
    assert "ok     dataset tilted: keeps test rows out of training and validation" in done.stdout


def test_it_runs_beside_the_projects_own(installed: Path, tmp_path: Path) -> None:
    done = oodbench(
        installed, "run", "--method", "risk_spread", "--method", "mean_rule", "--method", "erm", "--dataset", "tilted",
        "--set", "rows=200", "--trials", "4", "--seeds", "3", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (board,) = json.loads(done.stdout)
    errors = {row["method"]: row["metrics"]["mean_error"]["value"] for row in board["rows"]}
    assert errors["risk_spread"] < errors["erm"]  # it knows the groups, and the spurious slope hurts
    assert {row["method"]: row["information"] for row in board["rows"]}["risk_spread"] == "environments"


@pytest.mark.parametrize("kind", ["method", "dataset"])
def test_a_new_plugin_installs_and_passes_its_own_test(
    python: Path, pip_install: Callable[..., None], tmp_path: Path, kind: str
) -> None:
    name = f"fresh_{kind}"
    assert oodbench(python, "new", kind, name, cwd=tmp_path).returncode == 0
    pip_install(tmp_path / name)
    done = oodbench(python, "check", name, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = subprocess.run(
        [python, "-m", "pytest", "-q", str(tmp_path / name), "-p", "no:cacheprovider"],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert "1 passed" in tested.stdout, tested.stdout + tested.stderr
    assert sys.version_info >= (3, 11)
