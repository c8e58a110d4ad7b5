"""A team's tracking server that stops while a run is under way, and comes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUN = [
    "run", "-d", "selection_bias", "--set", "majority=200", "--set", "minority=40", "--set", "test_rows=50",
    "--trials", "3", "--seeds", "2",
]  # fmt: skip


def test_a_server_that_goes_away_gets_everything_once_when_it_is_back(
    tracking_server: Any, cli: Callable[..., Any], processes: Any, ray_address: str, tmp_path: Path
) -> None:
    """It stops while the second study is searched; passwords are in the URI and in the environment."""
    secret, before = "hunter2+s3cret", tracking_server.runs()
    uri = tracking_server.address.replace("http://", f"http://team:{secret}@")
    command = [
        sys.executable, "-m", "oodbench", *RUN, "-m", "erm", "-m", "fdro", "--set-training", "steps=5000", "--json",
        "--address", ray_address, "--tracking-uri", uri,
    ]  # fmt: skip
    driver = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not any(tmp_path.glob(".oodbench/studies/*/selection.json")):
        assert driver.poll() is None
        time.sleep(0.002)
    tracking_server.stop()
    out, err = driver.communicate(timeout=120)
    assert driver.returncode == 1, err
    assert "are not delivered yet to http://***@127.0.0.1" in err
    assert f"`oodbench sync --tracking-uri {tracking_server.address}`" in err
    rows = json.loads(out)[0]["rows"]
    assert all(row["metrics"]["mean_error"]["value"] is not None for row in rows)
    assert cli("sync").code == 1  # still away

    tracking_server.start()
    environment = {"MLFLOW_TRACKING_USERNAME": "team", "MLFLOW_TRACKING_PASSWORD": secret}
    synced = cli("sync", "--json", environment=environment)
    assert synced.code == 0, synced.err
    assert {one["delivered"] for one in synced.json()} == {True}
    assert cli("sync", environment=environment).out == "nothing in .oodbench is waiting for delivery\n"
    again = processes.run("oodbench", command[3:], tmp_path, os.environ, timeout=120)
    assert again.returncode == 0, again.stderr
    assert "all of it is in the record already" in again.stderr
    assert [(row["method"], row["metrics"]) for row in json.loads(again.stdout)[0]["rows"]] == [
        (row["method"], row["metrics"]) for row in rows
    ]
    assert tracking_server.runs() - before == {
        ("study", "FINISHED", "active"): 2,
        ("configuration", "FINISHED", "active"): 6,
    }
    said = out + err + synced.out + synced.err + again.stdout + again.stderr
    assert secret not in said
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if secret.encode() in path.read_bytes()]
