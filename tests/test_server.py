"""A team's tracking server: studies go to it over HTTP, artifacts too, and the leaderboard comes back from it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

import oodbench


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            sys.executable, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{tmp_path}/server.db",
            "--artifacts-destination", str(tmp_path / "artifacts"), "--host", "127.0.0.1", "--port", str(port),
            "--workers", "1",
        ],
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    for _ in range(300):
        try:
            urlopen(f"{address}/health", timeout=1).close()
            break
        except OSError:
            time.sleep(0.2)
    yield address
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(timeout=20)


def test_studies_go_to_the_server_and_come_back(server: str, ray_address: str, tmp_path: Path) -> None:
    settings = {"majority": 200, "minority": 40, "test_rows": 50}
    result = oodbench.run(
        ["erm", "fdro"], "selection_bias", settings=settings, trials=2, seeds=2, tracking_uri=server,
        directory=tmp_path / "local",
    )  # fmt: skip
    board = oodbench.leaderboard(
        "selection_bias", settings=settings, tracking_uri=server, directory=tmp_path / "nowhere"
    )
    assert {row.label for row in board.rows} == {"erm", "fdro"}
    assert [row.cells for row in board.rows] == [row.cells for row in result.leaderboard().rows]
    assert not (tmp_path / "local" / "mlflow.db").exists()
    assert list((tmp_path / "artifacts").rglob("results.parquet"))
    assert not list((tmp_path / "local").rglob("*.pickle"))
