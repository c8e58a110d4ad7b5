"""The sealed evaluation: test environments are opened once, after the selection is written down."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from oodbench.engine.data import Environment
from oodbench.engine.fitted import constant_model
from oodbench.engine.said import answer_together
from oodbench.engine.scoring import score, score_together
from oodbench.errors import StudyFailed
from oodbench.plugin.dataset import fault_in, fingerprint
from oodbench.study.looks import draw_test
from oodbench.study.meter import Meter
from oodbench.study.record import CONSTANT, NO_CONFIGURATION, Opening

if TYPE_CHECKING:
    from oodbench.engine.predictor import Predictor
    from oodbench.study.study import Study


def open_test(
    study: Study,
    predictors: Mapping[tuple[int, int], Predictor],
    configurations: Iterable[int],
    before_selection: bool,
    meter: Meter,
) -> tuple[list[dict[str, Any]], Opening, dict[int, list[Environment]]]:
    """Result rows of the configurations on every test environment and on the training rows, per seed, and those of the
    constant on the test environments: what any model must beat. The rows of test environments have all metrics.

    Rows drawn from the opened environments come along, by seed, so that nothing after this need open them again.
    The test data of one seed is let go before that of the next is made.
    """
    configurations = list(configurations)
    sizes: dict[str, int] = {}
    rows: list[dict[str, Any]] = []
    drawn: dict[int, list[Environment]] = {}
    fingerprints: list[str] = []
    for seed in study.seeds:
        test = list(study.dataset.test(seed))
        fault = fault_in("test", test, study.dataset, study.data.train[seed][0].x.shape[1])
        if fault:
            raise StudyFailed(fault)
        sizes = sizes or {environment.name: len(environment) for environment in test}
        drawn[seed] = draw_test(study.dataset, test)
        fingerprints.append(fingerprint(test))
        models = [predictors[configuration, seed] for configuration in configurations]
        for part, environments in (("train", study.data.train[seed]), ("test", test)):
            for environment, answering in answer_together(models, environments):
                scored = _score_all(study, answering, configurations, seed, part, environment)
                if part == "test":
                    measured = [meter.measure(model, environment) for model in answering]
                    scored = [row | values for row, values in zip(scored, measured, strict=True)]
                rows += scored
        rows += _score_constant(study, seed, test, meter)
    opening = Opening(
        opened_at=datetime.now(UTC).replace(microsecond=0),
        configurations=tuple(configurations),
        before_selection=before_selection,
        test_fingerprint=hashlib.sha256("".join(fingerprints).encode()).hexdigest()[:16],
        rows=sizes,
    )
    return rows, opening, drawn


def _score_all(
    study: Study,
    models: Sequence[Predictor],
    configurations: Sequence[int],
    seed: int,
    part: str,
    environment: Environment,
) -> list[dict[str, Any]]:
    rows = []
    dataset = study.dataset
    scores = score_together(models, environment, dataset.task, dataset.classes, threads=os.cpu_count() or 1)
    for configuration, scored in zip(configurations, scores, strict=True):
        if isinstance(scored, BaseException):
            raise scored
        where = {"configuration": configuration, "seed": seed, "part": part, "environment": environment.name}
        rows.append(where | {"rows": len(environment)} | scored)
    return rows


def _score_constant(study: Study, seed: int, test: Sequence[Environment], meter: Meter) -> list[dict[str, Any]]:
    dataset = study.dataset
    train = study.data.train[seed]
    y = np.concatenate([environment.y for environment in train])
    own = Meter(meter.metrics, meter.classes)  # what is missing of the constant is not so of the models
    constant = constant_model(y, dataset.task, dataset.classes, width=train[0].x.shape[1])
    return [
        {"configuration": NO_CONFIGURATION, "seed": seed, "part": CONSTANT, "environment": environment.name}
        | {"rows": len(environment)}
        | score(answering, environment, dataset.task, dataset.classes)
        | own.measure(answering, environment)
        for environment, (answering,) in answer_together([constant], test)
    ]
