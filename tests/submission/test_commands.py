"""From the record to a file, and from the file onto another's board: as commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from concluding import outcome_of, planned
from oodbench.record.outbox import Outbox

SETTINGS = ["--set", "majority=100", "--set", "minority=30", "--set", "test_rows=40", "--set", "test_r=-1.9,-2.9"]


def test_a_result_is_handed_in_and_stands_on_a_board(cli: Callable[..., Any], tmp_path: Path) -> None:
    settings = dict(word.split("=", 1) for word in SETTINGS[1::2])
    study = planned("ridge", "selection_bias", settings=settings, trials=2, seeds=2)
    Outbox(tmp_path / "mine").put(outcome_of(study, []), "", fresh=False)
    assert cli("sync", "--directory", "mine").code == 0
    packed = cli("submit", "mine", "--method", "ridge", "-o", "ridge.zip", "--json")
    assert packed.json()["studies"] == [{"method": "ridge", "dataset_id": study.dataset_id}], packed.err
    verified = cli("verify", "ridge.zip", "--rerun", "1", "--add", "--directory", "theirs", "--json")
    assert verified.code == 0, verified.err
    verdict = verified.json()
    assert [again["how"] for again in verdict["reruns"]] == ["bit for bit"]
    assert verdict["added"] == [f"ridge [handed in] on {study.dataset_id}"]
    board = cli("leaderboard", "selection_bias", *SETTINGS, "--directory", "theirs", "--json").json()
    assert [row["method"] for row in board["rows"]] == ["ridge [handed in]"]
    again = cli("submit", "theirs", "-o", "again.zip")
    assert (again.code, "there are no such studies" in again.err) == (2, True)  # they are another's to hand in
