"""A search goes on from an earlier one of fewer trials: nothing is trained twice, and the results are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oodbench
from oodbench.driver.progress import Progress
from oodbench.search import trained

TINY = {"majority": 200, "minority": 40, "test_rows": 50}
STEPS = {"steps": 20}


class Counted(Progress):
    """How many trainings a run did."""

    trainings = 0

    def advance(self, study: Any, trainings: int, failed: int) -> None:
        self.trainings += trainings


def run(directory: Path, trials: int, method: str = "fdro", **more: Any) -> tuple[oodbench.Result, int]:
    counted = Counted()
    result = oodbench.run(
        method, "selection_bias", settings=TINY, recipe=STEPS, trials=trials, seeds=2, directory=directory,
        no_stability=True, progress=counted, **more,
    )  # fmt: skip
    return result, counted.trainings


def cells(result: oodbench.Result) -> Any:
    (board,) = result.leaderboards()
    return [(row.label, row.cells) for row in board.rows]


@pytest.mark.parametrize(
    ("method", "more"), [("fdro", {}), ("ridge", {}), ("fdro", {"choose": "seed", "open_all": True})]
)
def test_more_trials_train_only_what_is_new_and_come_to_the_same(
    ray_address: str, tmp_path: Path, method: str, more: dict[str, Any]
) -> None:
    assert run(tmp_path / "own", 2, method, **more)[1] == 4
    assert run(tmp_path / "own", 3, method, **more)[1] == 2
    extended, trainings = run(tmp_path / "own", 5, method, **more)
    assert trainings == 4
    at_once, trainings = run(tmp_path / "other", 5, method, **more)
    assert trainings == 10
    assert cells(extended) == cells(at_once)
    (own,), (other,) = extended.studies, at_once.studies
    assert own.study_id == other.study_id


def test_another_selector_chooses_among_the_same_trainings(ray_address: str, tmp_path: Path) -> None:
    assert run(tmp_path / "own", 3)[1] == 6
    chosen, trainings = run(tmp_path / "own", 3, selector="mean")
    assert trainings == 0
    assert cells(chosen) == cells(run(tmp_path / "other", 3, selector="mean")[0])


def test_fresh_trains_everything(ray_address: str, tmp_path: Path) -> None:
    run(tmp_path, 2)
    assert run(tmp_path, 3, fresh=True)[1] == 6


def test_trainings_that_others_could_have_written_are_trained_again(ray_address: str, tmp_path: Path) -> None:
    run(tmp_path, 2)
    (kept,) = (tmp_path / "trained").iterdir()
    kept.chmod(0o777)
    assert run(tmp_path, 3)[1] == 6


def test_what_is_damaged_is_trained_again(ray_address: str, tmp_path: Path) -> None:
    run(tmp_path, 2)
    (pack,) = (tmp_path / "trained").glob("*/pack-*.pickle")
    pack.write_bytes(pack.read_bytes()[:-1])
    assert run(tmp_path, 3)[1] == 6


def test_the_searches_used_longest_ago_make_room(
    ray_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, 2)
    (first,) = (tmp_path / "trained").iterdir()
    monkeypatch.setattr(trained, "MOST_BYTES", 1.5 * sum(path.stat().st_size for path in first.iterdir()))
    run(tmp_path, 2, "erm")
    assert [place.name != first.name for place in (tmp_path / "trained").iterdir()] == [True]
