"""The pack of a worker that was killed goes on from where it was kept, as if nothing had happened."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

import oodbench
from concluding import planned
from oodbench import Hparams, Rows
from oodbench.driver import work
from oodbench.engine.keeping import Kept
from oodbench.search.keeping import FileKeeper, KeepAt
from oodbench.search.worker import run_pack
from oodbench.study.pack import PackResult
from oodbench.study.study import Study
from oodbench_methods.erm import ERM

STEPS, LAST = 60, 40
OPTIONS: dict[str, Any] = {
    "settings": {"majority": 60, "minority": 20, "test_rows": 20},
    "recipe": {"steps": STEPS},
    "trials": 2,
    "seeds": 1,
}


class Killed(ERM):
    """Writes down its steps, and kills its worker at one of them, the first time."""

    log: ClassVar[str] = ""

    def loss(self, rows: Rows, hp: Hparams) -> Any:
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{os.getpid()}\n")
            made = Path(self.log).read_text().split()
            if len(made) == LAST and len(set(made)) == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().loss(rows, hp)


def test_a_killed_worker_loses_a_few_steps(ray_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(work, "KEEP_SECONDS", 0.0)
    options = OPTIONS | {"no_stability": True}
    whole = oodbench.run(Killed, "selection_bias", directory=tmp_path / "whole", **options)
    monkeypatch.setattr(Killed, "log", str(tmp_path / "log"))
    again = oodbench.run(Killed, "selection_bias", directory=tmp_path / "killed", **options, fresh=True)
    made = (tmp_path / "log").read_text().split()
    assert len(set(made)) == 2  # processes
    assert made.count(made[0]) == LAST
    assert 0 < made.count(made[-1]) < STEPS  # it did not begin again
    pd.testing.assert_frame_equal(whole.results(), again.results())
    ledgers = [result.leaderboard().studies[0].record.ledger for result in (whole, again)]
    assert ledgers[0].gradient_steps == ledgers[1].gradient_steps == 2 * STEPS
    assert ledgers[0].row_visits == ledgers[1].row_visits


class Stops(FileKeeper):
    """Keeps the training after a few steps, and ends it there."""

    steps = 0

    @property
    def is_due(self) -> bool:
        self.steps += 1
        return self.steps == LAST

    def keep(self, make: Any) -> None:
        super().keep(make)
        raise KeyboardInterrupt


def run(study: Study, keeper: FileKeeper | None) -> PackResult:
    data = {seed: study.search_data(seed) for seed in study.seeds}
    return run_pack(study.method, study.packs[0], data, study.setup, keeper=keeper)


@pytest.fixture(scope="module")
def study() -> Study:
    return planned("srm", "selection_bias", **OPTIONS)


@pytest.fixture
def place(study: Study, tmp_path: Path) -> KeepAt:
    tmp_path.chmod(0o700)
    place = KeepAt(tmp_path / "pack.checkpoint", 0.0)
    with pytest.raises(KeyboardInterrupt):
        run(study, Stops(place))
    return place


def test_what_was_kept_ends_in_the_same_bits(study: Study, place: KeepAt) -> None:
    assert place.path.stat().st_mode & 0o777 == 0o600
    expected, result = run(study, None), run(study, FileKeeper(place))
    assert result.validation == expected.validation
    assert (result.gradient_steps, result.row_visits) == (expected.gradient_steps, expected.row_visits)


@pytest.mark.parametrize("fault", ["damaged", "of others", "a link", "of other trials", "folder of others"])
def test_what_is_not_ours_or_not_whole_is_not_used(study: Study, place: KeepAt, fault: str) -> None:
    keys = Kept.from_bytes(place.path.read_bytes()[32:]).checkpoint.trials
    assert FileKeeper(place).find(keys) is not None
    if fault == "damaged":
        place.path.write_bytes(place.path.read_bytes()[:-1])
    elif fault == "of others":
        place.path.chmod(0o666)
    elif fault == "a link":
        place.path.rename(place.path.with_suffix(".other"))
        place.path.symlink_to(place.path.with_suffix(".other"))
    elif fault == "folder of others":
        place.path.parent.chmod(0o777)
    elif fault == "of other trials":
        keys = keys[:1]
    assert FileKeeper(place).find(keys) is None


def test_a_worker_that_does_not_see_the_folder_keeps_nothing(study: Study, tmp_path: Path) -> None:
    place = KeepAt(tmp_path / "elsewhere" / "pack.checkpoint", 0.0)
    assert run(study, FileKeeper(place)).failures == {}
    assert not place.path.parent.exists()


def test_a_method_that_explores_by_a_plain_function_is_not_kept(tmp_path: Path) -> None:
    keeper = FileKeeper(KeepAt(tmp_path / "pack.checkpoint", 0.0))
    assert keeper.is_due
    keeper.keep(lambda: None)
    assert not keeper.is_due
    assert list(tmp_path.iterdir()) == []
