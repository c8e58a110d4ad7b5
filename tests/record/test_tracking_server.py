"""A team's tracking server: studies go to it over HTTP, artifacts too, and the leaderboard comes back from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import oodbench

SETTINGS = {"majority": 200, "minority": 40, "test_rows": 50}


def test_studies_go_to_the_server_and_come_back(tracking_server: Any, ray_address: str, tmp_path: Path) -> None:
    server = tracking_server.address
    result = oodbench.run(
        ["erm", "fdro"], "selection_bias", settings=SETTINGS, trials=2, seeds=2, tracking_uri=server,
        directory=tmp_path / "local",
    )  # fmt: skip
    board = oodbench.leaderboard(
        "selection_bias", settings=SETTINGS, tracking_uri=server, directory=tmp_path / "nowhere"
    )
    assert {row.label for row in board.rows} == {"erm", "fdro"}
    assert [row.cells for row in board.rows] == [row.cells for row in result.leaderboard().rows]
    assert not (tmp_path / "local" / "mlflow.db").exists()
    assert list((tracking_server.folder / "artifacts").rglob("results.parquet"))
    assert not list((tmp_path / "local").glob("studies/*/*.pickle"))
