"""Workers and nodes that are really lost, from outside, while a run goes on. `tox -e faults` runs this."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes import Nodes, ray_nodes

RUN = [
    sys.executable, "-m", "oodbench", "run", "--method", "erm", "--method", "fdro", "--dataset", "selection_bias",
    "--set", "majority=1000", "--set", "test_rows=100", "--trials", "8", "--seeds", "16", "--json",
    "--set-training", "steps=4000",
]  # fmt: skip


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with ray_nodes() as started:
        started.start("head", cpus=1)
        started.start("second", cpus=1)
        yield started


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    folder.mkdir()
    return subprocess.Popen(
        [*RUN, *more],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RAY_AUTH_MODE": "disabled"},
    )


def finish(process: subprocess.Popen[str]) -> list[Any]:
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    board: list[Any] = json.loads(out)
    for row in board[0]["rows"]:
        del row["run_id"], row["ledger"]["seconds"]  # all that may differ
    return board


def training(nodes: Nodes, count: int) -> list[int]:
    """Wait until so many workers train."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        found = nodes.workers()
        if len(found) >= count:
            return found
        time.sleep(0.1)
    raise TimeoutError(f"{count} workers did not start training")


@pytest.fixture(scope="module")
def undisturbed(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    started = time.monotonic()
    board = finish(start(tmp_path_factory.mktemp("runs") / "undisturbed", "--address", nodes.address))
    print(f"\nundisturbed, two nodes of one CPU: {time.monotonic() - started:.0f} s")
    return board


def test_workers_shot_while_they_train(nodes: Nodes, undisturbed: list[Any], tmp_path: Path) -> None:
    started = time.monotonic()
    process = start(tmp_path / "run", "--address", nodes.address)
    shot = set()
    for _ in range(2):
        victim = training(nodes, 1)[0]
        time.sleep(1)
        os.kill(victim, signal.SIGKILL)
        shot.add(victim)
        time.sleep(4)
    board = finish(process)
    print(f"\n{len(shot)} workers shot: {time.monotonic() - started:.0f} s, the same table: {board == undisturbed}")
    assert len(shot) == 2
    assert board == undisturbed


def test_a_node_lost_while_it_trains(nodes: Nodes, undisturbed: list[Any], tmp_path: Path) -> None:
    started = time.monotonic()
    process = start(tmp_path / "run", "--address", nodes.address)
    training(nodes, 2)  # one on each
    time.sleep(1)
    nodes.lose("second")
    board = finish(process)
    print(f"\none of two nodes lost: {time.monotonic() - started:.0f} s, the same table: {board == undisturbed}")
    assert board == undisturbed
