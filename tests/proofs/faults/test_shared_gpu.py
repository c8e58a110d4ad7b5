"""Packs that share one GPU by Ray's fractions, on a node that says it has one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oodbench
from nodes import Nodes, ray_nodes
from oodbench import Method, Uniform
from oodbench.errors import UserError

FOLDER = "SHARED_GPU_FOLDER"  # with the file `at_once`, how many may share the GPU, and what they say
FITS = 8
PATIENCE = 60  # seconds until as many as share the GPU must have come


class Waits(Method):
    """It would compute on a GPU, and says which one it was given, when it begins and when it ends."""

    space = {"share": Uniform(0.0, 1.0, default=0.5)}
    on_gpu = True

    def fit(self, train: Any, hparams: Any, seed: int) -> Any:
        import ray

        say(begins=1, gpus=ray.get_gpu_ids())
        awaited, deadline = int((folder() / "at_once").read_text()), time.monotonic() + PATIENCE
        while sum(line["begins"] > 0 for line in said()) < awaited and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(0.5)
        say(begins=-1, gpus=ray.get_gpu_ids())
        return Zero()


class Zero:
    def predict(self, x: Any) -> Any:
        return np.zeros(len(x))


def folder() -> Path:
    return Path(os.environ[FOLDER])


def say(**line: Any) -> None:
    with (folder() / "said").open("a") as log:
        log.write(json.dumps(line) + "\n")


def said() -> list[Any]:
    return [json.loads(line) for line in (folder() / "said").read_text().splitlines()]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with ray_nodes() as nodes, pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(tmp_path_factory.mktemp("shared")))
        nodes.start("head", cpus=6, gpus=1)
        yield nodes


@pytest.mark.parametrize(("share", "at_once"), [(None, 4), (0.5, 2), (1.0, 1)])
def test_packs_share_a_gpu(share: float | None, at_once: int, node: Nodes, tmp_path: Path) -> None:
    (folder() / "at_once").write_text(str(at_once))
    (folder() / "said").write_text("")
    run_apart(node, tmp_path, share)
    assert len(said()) == 2 * FITS
    assert {tuple(line["gpus"]) for line in said()} == {(0,)}
    assert max(accumulate(line["begins"] for line in said())) == at_once


def test_more_than_there_is(node: Nodes, tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_apart(node, tmp_path, 2.0)
    assert "no node of the Ray cluster has 1 CPU and 2 GPUs" in caught.value.stderr


def test_a_process_that_is_connected_elsewhere_is_told_so(ray_address: str, node: Nodes, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=f"={node.address}: this process is connected to the Ray cluster at {ray_address}"
    ):
        run_on(node.address, tmp_path, None)


def run_apart(nodes: Nodes, directory: Path, share: float | None) -> None:
    """In a process of its own: this one may be connected to the Ray of other tests."""
    command = [sys.executable, __file__, nodes.address, str(directory), str(share or "")]
    known = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": known}
    subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def run_on(address: str, directory: Path, share: float | None) -> None:
    result = oodbench.run(
        Waits,
        "selection_bias",
        settings={"majority": 100, "minority": 20, "test_rows": 20},
        trials=FITS,
        seeds=1,
        no_stability=True,
        device="cuda",
        gpus_per_pack=share,
        address=address,
        directory=directory,
    )
    (study,) = result.leaderboard().studies
    assert study.record.ledger.device == "cuda"
    assert not study.record.failures


if __name__ == "__main__":
    run_on(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]) if sys.argv[3] else None)
