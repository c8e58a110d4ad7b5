"""Where the stability of chosen models is looked at, so that the cost of it is bounded.

All of it depends on the data and the number of seeds only: every method on a dataset is looked at in the same places,
with as many rows, so that their stability can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from oodbench.engine.data import Environment

if TYPE_CHECKING:
    from oodbench.plugin.dataset import Dataset
    from oodbench.study.study import Study

MOST_ROWS = 2_500  # of an environment; of larger ones so many are drawn, and fewer where there are many classes
MOST_TEST_ROWS = 40_000  # of all test environments of a seed; with many of them, each gets its part of that
MOST_ENVIRONMENTS = 100  # of a part; of more, so many that are spread evenly over them
MOST_LOOKS = 100  # for the worst sub-population of a test environment; with many, the first seeds' models only
MOST_COST = 120_000  # of all of them, in rows of two classes: half a minute
OWN_COST = 125  # of one of them, besides its rows
REGRESSION = 0.15  # of what two classes cost


@dataclass(frozen=True, eq=False)
class Look:
    """At the model of a seed, in one environment."""

    seed: int
    part: str  # pooled, validation or test
    rows: Environment
    closely: bool = True  # for the worst sub-population too, which takes a hundred times longer than the whole

    @property
    def place(self) -> tuple[str, str]:
        return self.part, self.rows.name


def plan_looks(study: Study, test: Mapping[int, Sequence[Environment]]) -> list[Look]:
    """By seed the validation environments, pooled and each, and the test environments, of which `draw_test` kept rows.

    A single validation environment is the pooled one.
    """
    looks: list[Look] = []
    for number, (seed, tests) in enumerate(test.items()):
        validation = study.data.validation[seed]
        looks.append(Look(seed, "pooled", some_rows(study.dataset, study.data.pooled_validation[seed])))
        if len(validation) > 1:
            looks += [Look(seed, "validation", some_rows(study.dataset, rows)) for rows in watched(validation)]
        within = number == 0 or (number + 1) * len(tests) <= MOST_LOOKS
        looks += [Look(seed, "test", some_rows(study.dataset, rows), within) for rows in tests]
    return _within_cost(looks, study.dataset)


def draw_test(dataset: Dataset, environments: Sequence[Environment]) -> list[Environment]:
    """What is kept of opened test environments to look at."""
    chosen = watched(environments)
    most = min(_most_rows(dataset), MOST_TEST_ROWS // len(chosen))
    return [environment.draw(most) for environment in chosen]


def some_rows(dataset: Dataset, environment: Environment) -> Environment:
    """Rows that are few enough, with values that say what the task is: floats are regression."""
    rows = environment.draw(_most_rows(dataset))
    return rows if dataset.task == "classification" else replace(rows, y=rows.y.astype(float))


def watched(environments: Sequence[Environment]) -> list[Environment]:
    """Those that are looked at: all, unless there are too many."""
    if len(environments) <= MOST_ENVIRONMENTS:
        return list(environments)
    return [environments[place * len(environments) // MOST_ENVIRONMENTS] for place in range(MOST_ENVIRONMENTS)]


def _most_rows(dataset: Dataset) -> int:
    return MOST_ROWS // max(1, dataset.classes - 1) if dataset.task == "classification" else MOST_ROWS


def _within_cost(looks: Sequence[Look], dataset: Dataset) -> list[Look]:
    """Closely, as far as the cost goes: for the board the pooled validation rows of every seed, then for
    `oodbench stability` the first seed's test environments, then the others."""
    first = looks[0].seed

    def rank(number: int) -> int:
        look = looks[number]
        return {"pooled": 0, "validation": 2}.get(look.part, 1 if look.seed == first else 3)

    left, seen, kept = float(MOST_COST), set[tuple[str, str]](), set[int]()
    for number in sorted((number for number, look in enumerate(looks) if look.closely), key=rank):
        look = looks[number]
        times = 1 if look.place in seen else 2  # an exact model is looked at once in every place
        left -= times * _cost(dataset, len(look.rows))
        if left < 0:
            break
        seen.add(look.place)
        kept.add(number)
    return [replace(look, closely=number in kept) for number, look in enumerate(looks)]


def _cost(dataset: Dataset, rows: int) -> float:
    """As measured: it grows with the rows, and faster than the classes."""
    of_a_row = (dataset.classes - 1) ** 1.5 if dataset.task == "classification" else REGRESSION
    return of_a_row * (OWN_COST + rows)
