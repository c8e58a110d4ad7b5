"""Trainings that crash or kill their worker: only the trial that does it fails. `tests/search/test_lost_workers.py` has
one that hangs; `test_workers.py` has workers shot from outside and nodes that are lost."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import oodbench
from oodbench import Hparams, LossMethod, Rows, Uniform
from oodbench.search.worker import run_pack


class Weighted(LossMethod):
    """Least squares with a weight; from 0.8 on there may be a fault."""

    space = {"weight": Uniform(0.0, 1.0, default=0.0)}

    def loss(self, rows: Rows, hp: Hparams) -> Any:
        if (hp.weight > 0.8).any():
            self.fault()
        return rows.losses.mean(-1) * (1 + hp.weight)

    def fault(self) -> None: ...


class Crashes(Weighted):
    """As a segmentation fault would: the whole process goes."""

    def fault(self) -> None:
        os._exit(139)


class DiesOnce(Weighted):
    """As the out-of-memory killer's victims go, the first time."""

    marks = ""

    def fault(self) -> None:
        with contextlib.suppress(FileExistsError):
            (Path(self.marks) / "died").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def disturbed(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> oodbench.Result:
    """Both faults in one search; of two configurations, it takes the second."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test module
    DiesOnce.marks = str(tmp_path_factory.mktemp("marks"))
    return run([Crashes, DiesOnce], tmp_path_factory.mktemp("disturbed"))


def run(methods: Any, directory: Path) -> oodbench.Result:
    return oodbench.run(
        methods,
        "selection_bias",
        settings={"majority": 100, "minority": 20, "test_rows": 20},
        recipe={"steps": 20},
        fix={"weight": [0.0, 1.0], "learning_rate": 0.01, "weight_decay": 0.0},
        seeds=1,
        directory=directory,
    )


def failures(result: oodbench.Result, method: str) -> list[tuple[int, str]]:
    (row,) = (row for row in result.leaderboard().rows if row.label.startswith(method))
    (study,) = (study for study in result.leaderboard().studies if study.label == row.label)
    assert row.failed_trainings == len(study.record.failures)
    return [(failure.configuration, failure.reason) for failure in study.record.failures]


def results(result: oodbench.Result, method: str) -> pd.DataFrame:
    rows = result.results()
    return rows[rows["method"].str.startswith(method)].reset_index(drop=True)


def validation_errors(result: oodbench.Result, method: str, configuration: int) -> list[float]:
    rows = results(result, method)
    return list(rows[(rows["part"] == "validation") & (rows["configuration"] == configuration)]["error"])


def test_only_the_trial_that_kills_its_process_fails(disturbed: oodbench.Result) -> None:
    study = disturbed.studies[0]
    assert [len(pack.trials) for pack in study.packs] == [2]  # both train together
    assert failures(disturbed, "crashes") == [(1, "the worker failed 3 times: its process died")]
    # the other ends as it would have ended without the fault, to the tolerance of trainings in a pack
    calm = run_pack(Weighted(), study.packs[0], {0: study.search_data(0)}, study.setup)
    expected = [row["error"] for row in calm.validation if row["configuration"] == 0]
    assert validation_errors(disturbed, "crashes", 0) == pytest.approx(expected, rel=1e-5)


def test_a_worker_that_dies_once_leaves_no_trace_in_the_table(disturbed: oodbench.Result, tmp_path: Path) -> None:
    assert (Path(DiesOnce.marks) / "died").exists()
    undisturbed = run(DiesOnce, tmp_path).results()  # the mark is there: it does not die again
    pd.testing.assert_frame_equal(results(disturbed, "dies_once"), undisturbed, check_exact=True)
    assert failures(disturbed, "dies_once") == []
