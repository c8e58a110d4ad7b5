"""Workers that die, hang or are shot, on a real Ray cluster: what can be saved is saved, and the rest says why.

The long forms, with nodes that are lost and processes shot from outside, are in tests/faults.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import oodbench
from oodbench import Hparams, LossMethod, Rows, Uniform
from oodbench.errors import InvalidSetting
from oodbench.search.worker import run_pack
from oodbench.settings.duration import duration_text, parse_duration


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


class Hangs(Weighted):
    """With the interpreter's lock held, so that no thread of the worker could end it."""

    def fault(self) -> None:
        re.match(r"(a+)+$", "a" * 64 + "b")


class DiesOnce(Weighted):
    """As the out-of-memory killer's victims go, the first time."""

    marks = ""

    def fault(self) -> None:
        with contextlib.suppress(FileExistsError):
            (Path(self.marks) / "died").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def disturbed(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> oodbench.Result:
    """Every fault in one search; of two configurations, it takes the second."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test module
    DiesOnce.marks = str(tmp_path_factory.mktemp("marks"))
    return run([Crashes, Hangs, DiesOnce], tmp_path_factory.mktemp("disturbed"))


def run(methods: Any, directory: Path) -> oodbench.Result:
    return oodbench.run(
        methods,
        "selection_bias",
        settings={"majority": 100, "minority": 20, "test_rows": 20},
        recipe={"steps": 20},
        fix={"weight": [0.0, 1.0], "learning_rate": 0.01, "weight_decay": 0.0},
        seeds=1,
        trial_timeout="2.5s",
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


def test_only_the_trial_that_hangs_fails(disturbed: oodbench.Result) -> None:
    assert failures(disturbed, "hangs") == [(1, "no result within 2.5s (--trial-timeout)")]
    assert len(validation_errors(disturbed, "hangs", 0)) == 2


def test_a_worker_that_dies_once_leaves_no_trace_in_the_table(disturbed: oodbench.Result, tmp_path: Path) -> None:
    assert (Path(DiesOnce.marks) / "died").exists()
    undisturbed = run(DiesOnce, tmp_path).results()  # the mark is there: it does not die again
    pd.testing.assert_frame_equal(results(disturbed, "dies_once"), undisturbed, check_exact=True)
    assert failures(disturbed, "dies_once") == []


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("10m", 600), ("1.5h", 5400), (45, 45), ("0.5", 0.5)])
def test_lengths_of_time(text: str | float, seconds: float) -> None:
    assert parse_duration(text, "--budget") == seconds
    assert parse_duration(duration_text(seconds), "--budget") == seconds


@pytest.mark.parametrize("text", ["", "0s", "-3m", "soon", "3d", "nan", "1e3"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(InvalidSetting, match="is not a length of time.\nWrite it as 30s, 10m or 2h."):
        parse_duration(text, "--budget")
