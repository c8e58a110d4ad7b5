"""What a study says of the stability of its chosen models."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oodbench import Environment
from oodbench.study import assess as assessing
from oodbench.study.assess import NOT_LOOKED, assess
from oodbench.study.looks import MOST_COST, MOST_ENVIRONMENTS, MOST_LOOKS, MOST_ROWS, draw_test, plan_looks
from oodbench.study.record import Assessment


class FirstColumn:
    def predict(self, x: np.ndarray) -> np.ndarray:
        return x[:, 0]


def environment(name: str, rows: int = 40) -> Environment:
    rng = np.random.default_rng([rows, *name.encode()])
    x = rng.normal(size=(rows, 1))
    return Environment(name, x, x[:, 0] + rng.normal(size=rows))


def study_of(seeds: int, validation: list[Environment], task: str = "regression", classes: int = 2) -> Any:
    facts: dict[str, float] = {}
    dataset = SimpleNamespace(task=task, classes=classes, columns=None, facts=facts)
    training = SimpleNamespace(
        pooled_train=dict.fromkeys(range(seeds), environment("train")),
        validation=dict.fromkeys(range(seeds), validation),
        pooled_validation=dict.fromkeys(range(seeds), Environment.pooled("validation", validation)),
    )
    return SimpleNamespace(dataset=dataset, data=training, label="erm", dataset_id="data")


def look(seeds: int, tests: int, validation: list[Environment], said: list[str] | None = None) -> list[Assessment]:
    test = [environment(f"t{number}") for number in range(tests)]
    models = dict.fromkeys(range(seeds), FirstColumn())
    say = (lambda text: None) if said is None else said.append
    stability = assess(study_of(seeds, validation), models, dict.fromkeys(range(seeds), test), say)
    return list(stability.assessments)


def test_with_many_test_environments_worst_sub_populations_are_of_the_first_seeds() -> None:
    tests = MOST_LOOKS // 2
    found = [one for one in look(3, tests, [environment("v")]) if one.part == "test"]
    assert len(found) == 3 * tests
    assert all(one.ods is not None for one in found)
    for one in found:
        looked = one.seed < 2
        assert (one.stability is not None) == looked
        assert (one.worst is not None) == looked
        assert one.failure == ("" if looked else NOT_LOOKED)


def test_a_single_validation_environment_is_all_of_them_and_is_looked_at_once() -> None:
    pooled, only, *_ = look(1, 1, [environment("v", MOST_ROWS + 10)])
    assert (pooled.part, pooled.environment, pooled.rows) == ("pooled", "validation", MOST_ROWS)
    assert (only.part, only.environment, only.rows) == ("validation", "v", MOST_ROWS)
    assert only.stability == pooled.stability


def test_of_very_many_test_environments_some_are_looked_at_spread_evenly() -> None:
    dataset: Any = SimpleNamespace(task="regression", classes=2)
    kept = draw_test(dataset, [environment(f"t{number}", 12) for number in range(10 * MOST_ENVIRONMENTS)])
    assert [rows.name for rows in kept] == [f"t{10 * number}" for number in range(MOST_ENVIRONMENTS)]
    assert {len(rows) for rows in kept} == {12}


def test_many_classes_cost_fewer_rows_and_fewer_looks_the_board_s_first() -> None:
    validation = [environment("v", MOST_ROWS), environment("w", MOST_ROWS)]
    study = study_of(3, validation, "classification", classes=9)
    test = draw_test(study.dataset, [environment(f"t{number}", 1000) for number in range(50)])
    looks = plan_looks(study, dict.fromkeys(range(3), test))
    assert len(looks) == 3 * (1 + 2 + 50)
    assert max(len(look.rows) for look in looks) == MOST_ROWS // 8
    close = [look for look in looks if look.closely]
    assert sum(8**1.5 * len(look.rows) for look in close) < MOST_COST
    assert [look.part for look in close].count("pooled") == 3
    assert {look.seed for look in close if look.part == "test"} == {0}
    two = plan_looks(study_of(3, validation, "classification"), dict.fromkeys(range(3), test))
    assert [look.part for look in two if look.closely].count("test") == 2 * 50


def test_who_waits_for_long_is_told_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    look(1, 3, [environment("v")], said)
    assert not said
    monkeypatch.setattr(assessing, "QUIET", -1)
    look(1, 3, [environment("v")], said)
    assert said[1].startswith("erm on data: its stability in 1 of 4 places; --no-stability")
