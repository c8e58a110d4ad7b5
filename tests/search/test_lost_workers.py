"""A training that hangs, on a real Ray cluster: it is ended in time, and only it. Those that kill their worker are in
tests/proofs/faults/test_lost_workers.py."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import oodbench
from oodbench import Hparams, LossMethod, Rows, Uniform


class Hangs(LossMethod):
    """From a weight of 0.8 on, with the interpreter's lock held, so that no thread of the worker could end it."""

    space = {"weight": Uniform(0.0, 1.0, default=0.0)}

    def loss(self, rows: Rows, hp: Hparams) -> Any:
        if (hp.weight > 0.8).any():
            re.match(r"(a+)+$", "a" * 64 + "b")
        return rows.losses.mean(-1) * (1 + hp.weight)


@pytest.fixture(autouse=True)
def _workers_get_this_module(ray_address: str) -> None:
    """Workers cannot import a test module: its classes travel by value."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_only_the_trial_that_hangs_fails(tmp_path: Path) -> None:
    result = oodbench.run(
        Hangs,
        "selection_bias",
        settings={"majority": 100, "minority": 20, "test_rows": 20},
        recipe={"steps": 20},
        fix={"weight": [0.0, 1.0], "learning_rate": 0.01, "weight_decay": 0.0},
        seeds=1,
        trial_timeout="2.5s",
        directory=tmp_path,
    )
    (study,) = result.leaderboard().studies
    assert [(failure.configuration, failure.reason) for failure in study.record.failures] == [
        (1, "no result within 2.5s (--trial-timeout)")
    ]
    rows = result.results()
    assert len(rows[(rows["part"] == "validation") & (rows["configuration"] == 0)]) == 2
