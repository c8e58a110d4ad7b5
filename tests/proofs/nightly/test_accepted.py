"""A small real suite: its baseline is accepted, and the next night is quiet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nights import SUITE

Cli = Callable[..., Any]


def test_a_real_suite_is_accepted_and_then_quiet(cli: Cli, ray_address: str, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SUITE)
    first = cli("nightly", "small.toml", "--accept", "--address", ray_address)
    assert first.code == 0, first.err
    files = json.loads((tmp_path / "nightly.json").read_text())["files"]
    assert files == [
        *(f"regression{end}" for end in (".md", ".csv", "_cells.csv", "_chosen.csv", "_sweep.csv", ".tex")),
        "page/index.html",
        "README.md",
    ]
    # the night before is forgotten: everything is trained again, and comes to the same bits
    again = cli("nightly", "small.toml", "--address", ray_address, "-o", "report")
    assert again.code == 0, again.err + again.out
    assert "2 trainings in" in again.err
    assert "nothing to report: 1 study compared with the baseline" in again.out
    assert "2 seeds are too few" in again.err
    assert (tmp_path / "report" / "index.html").exists()
    assert (tmp_path / "report" / "boards" / "regression_cells.csv").read_bytes() == (
        tmp_path / "regression_cells.csv"
    ).read_bytes()
