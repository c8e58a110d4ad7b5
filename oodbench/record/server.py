"""The MLflow page of the embedded record, with few processes, on this machine only."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.errors import Unreachable, UserError
from oodbench.study.plan import dataset_id_of

if TYPE_CHECKING:
    from rich.console import Console

HOST = "127.0.0.1"
START_SECONDS = 60


def serve(dataset: str | None, settings: Mapping[str, str], port: int, directory: Path, console: Console) -> None:
    """Serve until interrupted."""
    from oodbench.record.tracking import Record

    dataset_id = dataset_id_of(dataset, settings) if dataset else None
    record = Record(None, directory)
    if record.is_empty:
        raise UserError(f"there is no record in {directory}.\nRun something first, or name its --directory.")
    recorded = record.dataset_ids()
    if not recorded or (dataset_id and dataset_id not in recorded):
        raise UserError(
            f"there are no studies on {dataset_id or 'any dataset'} in {directory}.\n"
            f"There are studies on: {', '.join(recorded) or 'none'}."
        )
    experiment = record.experiment_id(dataset_id or recorded[0]) or ""
    if not _is_free(port):
        raise Unreachable(f"port {port} is taken.\nChoose another with --port.")
    server = subprocess.Popen(
        [
            sys.executable, "-m", "mlflow", "server", "--backend-store-uri", record.uri,
            "--host", HOST, "--port", str(port), "--workers", "1",
        ],
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C reaches us, and we end the server with its children
    )  # fmt: skip
    try:
        _wait_until_up(server, port)
        console.print(f"http://{HOST}:{port}/{record.page_of(experiment)}", highlight=False, soft_wrap=True)
        console.print("[dim]Ctrl-C stops it[/dim]")
        server.wait()
    except KeyboardInterrupt:
        pass
    finally:
        if server.poll() is None:
            _end(server)


def _end(server: subprocess.Popen[bytes]) -> None:
    os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:  # a busy machine, or a page that is still open
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait_until_up(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise Unreachable(
                f"the MLflow server stopped with exit code {server.returncode}.\nRun `mlflow server` to see why."
            )
        if not _is_free(port):
            return
        time.sleep(0.2)
    raise Unreachable(f"the MLflow server did not answer within {START_SECONDS} s.\nTry again.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) != 0
