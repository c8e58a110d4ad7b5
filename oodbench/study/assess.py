"""The stability of a study's chosen models: on validation data, pooled and each, and on test environments.

The driver does this after the selection, with the test environments that the sealed evaluation opened.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oodbench.engine.data import Environment
from oodbench.engine.scoring import score
from oodbench.errors import one_line
from oodbench.kit.stability import ALPHA0, describe, exact_stability, ood_stability, worst_subpopulation
from oodbench.study.looks import Look, plan_looks, some_rows
from oodbench.study.record import Assessment, Chosen, Stability

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.engine.predictor import Predictor
    from oodbench.study.study import Study

MOST_COLUMNS = 20  # in a description
QUIET = 10.0  # seconds between two lines of progress

NOT_LOOKED = "not looked for: with so many environments or classes, only with the models of the first seeds, or nowhere"


def assess(
    study: Study,
    models: Mapping[int, Predictor],
    test: Mapping[int, Sequence[Environment]],
    say: Callable[[str], object] = lambda text: None,
) -> Stability:
    """Look at the model of every seed, with the alpha0 that the dataset tells, if it tells one.

    `test` has, by seed, rows drawn from the test environments when they were opened. Who waits for long is told.
    """
    alpha0 = alpha0_of(study)
    looks = plan_looks(study, test)
    # what an exact model has there hardly depends on the seed: it is found for the first one only
    first = {_place(look): look for look in reversed(looks)}
    train = {
        seed: some_rows(study.dataset, study.data.pooled_train[seed])
        for seed in dict.fromkeys(look.seed for look in looks)
    }

    def see(look: Look) -> Assessment:
        is_first = first[_place(look)] is look
        return _look(study, models[look.seed], train[look.seed], alpha0, is_first, look)

    told = time.monotonic()
    exact: dict[tuple[str, str, int], float | None] = {}
    assessments: list[Assessment] = []
    # one after the other: these are many small steps, between which Python's lock makes threads wait for each other
    for number, look in enumerate(looks):
        if time.monotonic() > told + QUIET:
            told = time.monotonic()
            say(
                f"{study.label} on {study.dataset_id}: its stability in {number} of {len(looks)} places; "
                "--no-stability leaves this out"
            )
        seen = see(look)
        known = exact.setdefault(_place(look), seen.exact)
        seen = seen if seen.stability is None else replace(seen, exact=known)
        assessments.append(seen)
        validation = study.data.validation[look.seed]
        if look.part == "pooled" and len(validation) == 1:
            assessments.append(replace(seen, part="validation", environment=validation[0].name))
    return Stability(alpha0, tuple(assessments))


def _place(look: Look) -> tuple[str, str, int]:
    return (*look.place, len(look.rows))


def score_pooled(study: Study, models: Mapping[int, Predictor], choice: Chosen) -> list[dict[str, Any]]:
    """The result rows of the pooled validation data."""
    rows = []
    for seed, model in models.items():
        together = study.data.pooled_validation[seed]
        rows.append(
            {"configuration": choice.of_seed(seed), "seed": seed, "part": "pooled", "environment": together.name}
            | {"rows": len(together)}
            | score(model, together, study.dataset.task, study.dataset.classes)
        )
    return rows


def join(results: pd.DataFrame, stability: Stability | None) -> pd.DataFrame:
    """The results with the columns `stability` and `ods`; only the chosen configuration has values there."""
    measured = {(seen.seed, seen.part, seen.environment): seen for seen in (stability.assessments if stability else ())}
    keys = zip(results["seed"], results["part"], results["environment"], strict=True)
    rows = [measured.get(key) if chosen else None for key, chosen in zip(keys, results["chosen"], strict=True)]
    return results.assign(
        stability=[_number(row.stability if row else None) for row in rows],
        ods=[_number(row.ods if row else None) for row in rows],
    )


def _look(
    study: Study, model: Predictor, train: Environment, alpha0: float, with_exact: bool, look: Look
) -> Assessment:
    rows = look.rows
    seen = Assessment(look.seed, look.part, rows.name, len(rows))
    try:
        if look.part == "test":
            seen = replace(seen, ods=ood_stability(model, train, rows))
        if look.closely:
            worst = worst_subpopulation(model, rows, alpha0)
            described = describe(model, rows, worst, study.dataset.columns)
            described = replace(described, columns=described.columns[:MOST_COLUMNS])
            exact = exact_stability(model, rows, alpha0) if with_exact else None
            seen = replace(seen, stability=worst.divergence, exact=exact, worst=described)
    except (Exception, SystemExit) as error:  # the model has its scores; this is one thing less to say of it
        return replace(seen, failure=one_line(error))
    return seen if look.closely else replace(seen, failure=NOT_LOOKED)


def alpha0_of(study: Study) -> float:
    told = study.dataset.facts.get("alpha0", ALPHA0)
    return told if 0 < told <= 0.5 else ALPHA0


def _number(value: float | None) -> float:
    return math.nan if value is None else value
