"""The stability of a study's chosen models: on validation data, pooled and each, and on every test environment.

The driver does this after the selection, with the test environments that the sealed evaluation opened.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from oodbench.dataset import Environment
from oodbench.errors import one_line
from oodbench.metrics import score
from oodbench.stability import ALPHA0, Description, describe, ood_stability, worst_subpopulation

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.method import Predictor
    from oodbench.study import Study

MOST_ROWS = 5_000  # of an environment; of larger ones so many are drawn
MOST_TEST_ROWS = 40_000  # of all test environments of a seed; with many of them, each gets its part of that
MOST_COLUMNS = 20  # in a description


@dataclass(frozen=True)
class Assessment:
    """How stable the chosen model of a seed is in one environment."""

    seed: int
    part: str  # validation, test, or pooled: the validation environments together
    environment: str
    rows: int  # that were looked at
    stability: float = math.nan
    ods: float = math.nan  # from the training rows; of test environments only
    worst: Description | None = None
    failure: str = ""  # why there are no values


@dataclass(frozen=True)
class Stability:
    """All assessments of a study, at one alpha0."""

    alpha0: float
    assessments: list[Assessment]
    pooled: list[dict[str, Any]] = field(default_factory=list)  # result rows of the pooled validation data

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"alpha0": self.alpha0, "assessments": [_plain(one) for one in self.assessments]}

    def join(self, results: pd.DataFrame) -> pd.DataFrame:
        """The results with the columns `stability` and `ods`; only the chosen configuration has values there."""
        measured = {(one.seed, one.part, one.environment): one for one in self.assessments}
        keys = zip(results["seed"], results["part"], results["environment"], strict=True)
        rows = [measured.get(key) if chosen else None for key, chosen in zip(keys, results["chosen"], strict=True)]
        return results.assign(
            stability=[row.stability if row else math.nan for row in rows],
            ods=[row.ods if row else math.nan for row in rows],
        )


def assess(
    study: Study,
    models: Mapping[int, Predictor],
    configuration: int,
    opened: Mapping[int, Sequence[Environment]],
) -> Stability:
    """Look at the model of every seed, with the alpha0 that the dataset tells, if it tells one."""
    told = study.dataset.facts.get("alpha0", ALPHA0)
    alpha0 = told if 0 < told <= 0.5 else ALPHA0
    found, pooled = [], []
    for seed, model in models.items():
        most = min(MOST_ROWS, MOST_TEST_ROWS // len(opened[seed]))
        train = _rows(study, "training", study.training.train[seed], MOST_ROWS)
        validation = study.training.validation[seed]
        together = Environment(
            "validation", np.concatenate([one.x for one in validation]), np.concatenate([one.y for one in validation])
        )
        for part, environment in _parts(together, validation, opened[seed]):
            rows = _rows(study, environment.name, [environment], most if part == "test" else MOST_ROWS)
            found.append(_look(study, model, seed, part, rows, train, alpha0))
        pooled.append(
            {"configuration": configuration, "seed": seed, "part": "pooled", "environment": together.name}
            | {"rows": len(together)}
            | score(model, together, study.dataset.task, study.dataset.classes)
        )
    return Stability(alpha0, found, pooled)


def _parts(
    pooled: Environment, validation: Sequence[Environment], test: Sequence[Environment]
) -> Iterator[tuple[str, Environment]]:
    yield "pooled", pooled
    yield from (("validation", environment) for environment in validation)
    yield from (("test", environment) for environment in test)


def _look(
    study: Study, model: Predictor, seed: int, part: str, rows: Environment, train: Environment, alpha0: float
) -> Assessment:
    try:
        worst = worst_subpopulation(model, rows, alpha0)
        description = describe(model, rows, worst, study.dataset.columns)
        ods = ood_stability(model, train, rows) if part == "test" else math.nan
    except (Exception, SystemExit) as error:  # the model has its scores; this is one thing less to say of it
        return Assessment(seed, part, rows.name, len(rows), failure=one_line(error))
    return Assessment(seed, part, rows.name, len(rows), worst.divergence, ods, description)


def _rows(study: Study, name: str, environments: Sequence[Environment], most: int) -> Environment:
    """The environments' rows together, at most so many of them, always the same."""
    x, y = np.concatenate([one.x for one in environments]), np.concatenate([one.y for one in environments])
    if len(y) > most:
        drawn = np.sort(np.random.default_rng(0).choice(len(y), most, replace=False))
        x, y = x[drawn], y[drawn]
    return Environment(name, x, y.astype(np.float64) if study.dataset.task == "regression" else y)


def _plain(assessment: Assessment) -> dict[str, Any]:
    plain = {key: None if value != value else value for key, value in asdict(assessment).items()}
    if plain["worst"]:
        plain["worst"]["columns"] = plain["worst"]["columns"][:MOST_COLUMNS]
    return plain
