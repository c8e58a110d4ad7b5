"""The stability of a study's chosen models: on validation data, pooled and each, and on every test environment.

The driver does this after the selection, with the test environments that the sealed evaluation opened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from oodbench.engine.data import Environment
from oodbench.engine.scoring import score
from oodbench.errors import one_line
from oodbench.kit.stability import ALPHA0, describe, exact_stability, ood_stability, worst_subpopulation
from oodbench.study.record import Assessment, Chosen, Stability

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.engine.predictor import Predictor
    from oodbench.study.study import Study

MOST_ROWS = 2_500  # of an environment; of larger ones so many are drawn
MOST_TEST_ROWS = 40_000  # of all test environments of a seed; with many of them, each gets its part of that
MOST_LOOKS = 100  # for the worst sub-population of a test environment; with many, the first seeds' models only
MOST_COLUMNS = 20  # in a description

NOT_LOOKED = "not looked for: with so many test environments, only with the models of the first seeds"


def assess(
    study: Study,
    models: Mapping[int, Predictor],
    choice: Chosen,
    test: Mapping[int, Sequence[Environment]],
) -> tuple[Stability, list[dict[str, Any]]]:
    """Look at the model of every seed, with the alpha0 that the dataset tells, if it tells one.

    `test` has, by seed, rows drawn from the test environments when they were opened. Also gives the result rows of the
    pooled validation data.
    """
    exact: dict[tuple[str, str, int], float] = {}
    alpha0 = alpha0_of(study)
    assessments: list[Assessment] = []
    pooled: list[dict[str, Any]] = []
    for number, (seed, model) in enumerate(models.items()):
        train = some_rows(study, Environment.pooled("training", study.data.train[seed]))
        validation = study.data.validation[seed]
        together = Environment.pooled("validation", validation)
        look = partial(_look, study, model, seed, train, alpha0, exact)
        pooled_look = look("pooled", some_rows(study, together))
        assessments.append(pooled_look)
        if len(validation) == 1:
            assessments.append(replace(pooled_look, part="validation", environment=validation[0].name))
        else:
            assessments += [look("validation", some_rows(study, environment)) for environment in validation]
        closely = number == 0 or (number + 1) * len(test[seed]) <= MOST_LOOKS
        assessments += [look("test", some_rows(study, environment), closely) for environment in test[seed]]
        pooled.append(
            {"configuration": choice.of_seed(seed), "seed": seed, "part": "pooled", "environment": together.name}
            | {"rows": len(together)}
            | score(model, together, study.dataset.task, study.dataset.classes)
        )
    return Stability(alpha0, tuple(assessments)), pooled


def join(results: pd.DataFrame, stability: Stability) -> pd.DataFrame:
    """The results with the columns `stability` and `ods`; only the chosen configuration has values there."""
    measured = {(seen.seed, seen.part, seen.environment): seen for seen in stability.assessments}
    keys = zip(results["seed"], results["part"], results["environment"], strict=True)
    rows = [measured.get(key) if chosen else None for key, chosen in zip(keys, results["chosen"], strict=True)]
    return results.assign(
        stability=[_number(row.stability if row else None) for row in rows],
        ods=[_number(row.ods if row else None) for row in rows],
    )


def _look(
    study: Study,
    model: Predictor,
    seed: int,
    train: Environment,
    alpha0: float,
    exact: dict[tuple[str, str, int], float],
    part: str,
    rows: Environment,
    closely: bool = True,
) -> Assessment:
    """`closely`: for the worst sub-population too, which takes a hundred times longer than the whole.

    `exact` keeps what an exact model has there: it hardly depends on the seed, and is found for the first one only.
    """
    seen = Assessment(seed, part, rows.name, len(rows))
    place = (part, rows.name, len(rows))
    try:
        if part == "test":
            seen = replace(seen, ods=ood_stability(model, train, rows))
        if closely:
            worst = worst_subpopulation(model, rows, alpha0)
            described = describe(model, rows, worst, study.dataset.columns)
            described = replace(described, columns=described.columns[:MOST_COLUMNS])
            if place not in exact:
                exact[place] = exact_stability(model, rows, alpha0)
            seen = replace(seen, stability=worst.divergence, exact=exact[place], worst=described)
    except (Exception, SystemExit) as error:  # the model has its scores; this is one thing less to say of it
        return replace(seen, failure=one_line(error))
    return seen if closely else replace(seen, failure=NOT_LOOKED)


def alpha0_of(study: Study) -> float:
    told = study.dataset.facts.get("alpha0", ALPHA0)
    return told if 0 < told <= 0.5 else ALPHA0


def some_rows(study: Study, environment: Environment) -> Environment:
    """Rows that are few enough, with values that say what the task is: floats are regression."""
    rows = environment.draw(MOST_ROWS)
    return rows if study.dataset.task == "classification" else replace(rows, y=rows.y.astype(float))


def _number(value: float | None) -> float:
    return math.nan if value is None else value
