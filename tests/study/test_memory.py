"""The memory of a run is predicted, and a worker stays within it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from oodbench import Dataset, Environment, Linear, Mlp, Recipe
from oodbench.report.plan import describe_plan
from oodbench.report.text import memory_text
from oodbench.study.memory import WORKER_BYTES, Memory, predict_memory
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.spec import StudyOptions
from oodbench.study.study import Study
from peak import measure_pack


@dataclass(frozen=True)
class Long(Dataset):
    """Many rows."""

    task = "classification"
    classes = 2
    model = Linear()
    recipe = Recipe(steps=5)
    rows: int = 1000
    features: int = 20

    def train(self, seed: int) -> Sequence[Environment]:
        return [self._make(name, seed) for name in ("a", "b")]

    def validation(self, seed: int) -> Sequence[Environment]:
        return [self._make("c", seed)]

    def test(self, seed: int) -> Sequence[Environment]:
        return [self._make("d", seed)]

    def _make(self, name: str, seed: int) -> Environment:
        x = np.random.default_rng([seed, ord(name)]).normal(size=(self.rows, self.features))
        return Environment(name, x, (x[:, 0] > 0).astype(int))


def studies_on(rows: int, *methods: str, **options: Any) -> list[Study]:
    given: dict[str, Any] = {"settings": {"rows": rows}, "trials": 8, "seeds": 1} | options
    return plan(resolve(Request(methods, [Long], StudyOptions(**given))), "cpu")


def test_rows_are_counted_once_for_each_precision() -> None:
    number, row = 20 * 3 * 1000, 3 * 1000  # of training and validation
    (erm,) = studies_on(1000, "erm", seeds=2)
    assert predict_memory([erm]).store == 2 * (4 * number + 8 * row)
    assert predict_memory([erm]).shared == 2 * (4 * number + 8 * row)
    both = predict_memory(studies_on(1000, "erm", "group_dro", "logistic"))
    assert both.store == 4 * number + 8 * number + 8 * row + 8 * 2000


def test_a_wider_model_and_more_rows_take_more() -> None:
    small, wide = studies_on(1000, "erm"), studies_on(1000, "erm", model=Mlp(width=(256, 256)))
    assert predict_memory(small).worker < predict_memory(wide).worker
    assert predict_memory(small).worker < predict_memory(studies_on(10_000, "erm")).worker
    assert predict_memory(small + wide).worker == predict_memory(wide).worker


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", ["erm", "jtt", "logistic"])
def test_a_worker_stays_within_what_was_predicted(ray_address: str, name: str) -> None:
    (study,) = studies_on(200_000, name)
    before, peak = measure_pack(study, study.packs[0])
    assert before < WORKER_BYTES
    assert peak - before < predict_memory([study]).worker - WORKER_BYTES


def test_the_plan_says_it() -> None:
    studies = studies_on(1000, "erm")
    said = json.loads(json.dumps(describe_plan(studies)))
    assert said["memory"] == said["studies"][0]["memory"] == predict_memory(studies).as_dict()
    assert said["trainings"] == 8
    text = memory_text(Memory(worker=1_340_000_000, shared=80_000_000, store=2_500_000_000, files=5_000_000_000))
    assert text == (
        "at most 1.3 GB a worker, 80 MB of it shared; 2.5 GB of rows in the object store; 5.0 GB in temporary files"
    )
