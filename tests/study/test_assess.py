"""What a study says of the stability of its chosen models."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from oodbench import Environment
from oodbench.study.assess import MOST_LOOKS, MOST_ROWS, NOT_LOOKED, assess
from oodbench.study.record import Assessment, Chosen


class FirstColumn:
    def predict(self, x: np.ndarray) -> np.ndarray:
        return x[:, 0]


def environment(name: str, rows: int = 40) -> Environment:
    rng = np.random.default_rng([rows, *name.encode()])
    x = rng.normal(size=(rows, 1))
    return Environment(name, x, x[:, 0] + rng.normal(size=rows))


def look(seeds: int, tests: int, validation: list[Environment]) -> tuple[Assessment, ...]:
    facts: dict[str, float] = {}
    dataset: Any = SimpleNamespace(task="regression", classes=2, columns=None, facts=facts)
    training = SimpleNamespace(
        train=dict.fromkeys(range(seeds), (environment("train"),)), validation=dict.fromkeys(range(seeds), validation)
    )
    study: Any = SimpleNamespace(dataset=dataset, data=training)
    test = [environment(f"t{number}") for number in range(tests)]
    models = dict.fromkeys(range(seeds), FirstColumn())
    stability, _ = assess(study, models, Chosen("worst", 0, 1.0, {}), dict.fromkeys(range(seeds), test))
    return stability.assessments


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
