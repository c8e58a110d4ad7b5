"""A suite with regressions planted in a method, on the machine of the baseline and on another; and unchanged, on idle
and on busy cores, where nothing must be said. Run by `tox -e nightly-proof`, which prints figures.

A regression is planted as a developer would make it: in the method's file, here in a copy that is found first.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import oodbench_methods
from places import ROOT

SUITE = """
title = "Two methods, a regression and a classification"
trials = 2
seeds = 12
methods = ["erm", "srm"]
[[boards]]
name = "regression"
dataset = "selection_bias"
settings = { majority = 400, minority = 40, test_rows = 200, test_r = "-1.9,-2.9" }
[[boards]]
name = "classification"
dataset = "table"
[boards.settings]
path = "datasets/oodbench_datasets/table_example.csv"
target = "late"
environment = "region"
train = "north,south"
[modes.fair]
"""
MINUTES = 30
WORSE = """

class ERM(ERM):  # as good as before but for this
    def fit_pack(self, train, trials, trainer):
        from dataclasses import replace

        fitted = super().fit_pack(train, trials, trainer)
        return [replace(one, parameters=one.parameters * 1.1) if not one.model.hidden else one for one in fitted]
"""
SLOW = """

class ERM(ERM):
    def fit_pack(self, train, trials, trainer):
        super().fit_pack(train, trials, trainer)
        return super().fit_pack(train, trials, trainer)
"""
BURN = "while True: sum(range(10_000))"


@dataclass(frozen=True)
class Told:
    code: int
    found: dict[str, Any]

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(finding["kind"], finding["about"].split()[0]) for finding in self.found["findings"]]

    @property
    def times(self) -> dict[str, float]:
        return {one["method"]: round(one["times"], 2) for one in self.found["speed"]}


Nightly = Callable[..., Told]


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the suite and its baseline. Made here: the committed one is of another machine, perhaps."""
    folder = tmp_path_factory.mktemp("baseline")
    (folder / "suite.toml").write_text(SUITE)
    _nightly(folder, "--accept")
    return folder


@pytest.fixture
def nightly(baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Nightly:
    def run(name: str, against: Path = baseline, planted: str = "", **variables: str) -> Told:
        if planted:
            copy = shutil.copytree(Path(oodbench_methods.__file__).parent, tmp_path / "oodbench_methods")
            with (copy / "erm.py").open("a") as file:
                file.write(planted)
            variables["PYTHONPATH"] = str(tmp_path)
        done = _nightly(against, "--output", str(tmp_path / "report"), "--json", **variables)
        told = Told(done.returncode, json.loads(done.stdout))
        with capsys.disabled():
            print(f"\n  {name}: exit code {told.code}, {len(told.kinds)} findings; speed {told.times}")
            for finding in told.found["findings"]:
                print(f"    {finding['kind']}: {finding['about']} {finding['what']}\n      {finding['more']}")
        assert told.code == bool(told.kinds)
        assert f"{len(told.kinds)} finding" in _page(tmp_path) or not told.kinds
        return told

    return run


def _nightly(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "oodbench", "nightly", str(folder / "suite.toml"), *arguments]
    environment = os.environ | variables
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=60 * MINUTES, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done


def _page(folder: Path) -> str:
    return (folder / "report" / "index.html").read_text()


@pytest.fixture
def of_another_machine(baseline: Path, tmp_path: Path) -> Path:
    """The same baseline, made elsewhere as far as anybody can tell."""
    folder = shutil.copytree(baseline, tmp_path / "elsewhere")
    content = json.loads((folder / "nightly.json").read_text())
    content["machine"]["cpu"] = "another"
    (folder / "nightly.json").write_text(json.dumps(content))
    return folder


@contextlib.contextmanager
def burning(processes: int) -> Iterator[None]:
    burners = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(processes)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.mark.parametrize("time", ["first", "second", "third"])
def test_unchanged_it_is_quiet(nightly: Nightly, time: str) -> None:
    assert nightly(f"unchanged, {time} time").kinds == []


def test_unchanged_it_is_quiet_while_others_burn_both_cores(nightly: Nightly) -> None:
    with burning(os.cpu_count() or 2):
        assert nightly("unchanged, all cores busy").kinds == []


def test_unchanged_with_other_rounding_it_is_quiet(nightly: Nightly) -> None:
    """Other vector instructions are another machine: the bits differ, the results do not."""
    told = nightly("unchanged, torch without vector instructions", ATEN_CPU_CAPABILITY="default")
    assert any("instructions" in one for one in told.found["differs_in"])
    assert {row["verdict"] for row in told.found["comparison"]["rows"]} != {"identical"}
    assert told.kinds == []


def test_a_method_made_five_percent_worse_is_caught(nightly: Nightly) -> None:
    told = nightly("erm 5 % worse", planted=WORSE)
    assert told.kinds == [("worse", "erm")]
    (finding,) = told.found["findings"]
    (row,) = [row for row in told.found["comparison"]["rows"] if row["verdict"] == "worse"]
    assert 0.03 < row["difference"] / row["a"] < 0.07
    assert "suite.toml --accept` makes it the baseline" in finding["more"]


def test_a_method_made_five_percent_worse_is_caught_elsewhere(nightly: Nightly, of_another_machine: Path) -> None:
    told = nightly("erm 5 % worse, another machine", against=of_another_machine, planted=WORSE)
    assert told.found["same_machine"] is False
    assert told.kinds == [("worse", "erm")]


def test_a_method_made_twice_as_slow_is_caught(nightly: Nightly) -> None:
    told = nightly("erm twice as slow", planted=SLOW)
    assert told.kinds == [("slower", "erm")]
    assert 1.6 < told.times["erm"] < 2.4
