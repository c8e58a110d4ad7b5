"""The sealed evaluation: test environments are opened once, after the selection is written down."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.data import Environment
from oodbench.engine.fitted import constant_model
from oodbench.engine.said import answer_together
from oodbench.engine.scoring import score, score_together
from oodbench.errors import StudyFailed
from oodbench.plugin.dataset import fault_in, fingerprint
from oodbench.plugin.selector import Target
from oodbench.study.looks import MOST_ROWS, draw_test, some_rows
from oodbench.study.meter import Meter
from oodbench.study.record import CONSTANT, NO_CONFIGURATION, OPENED, Opening
from oodbench.study.selectors import find_selector

if TYPE_CHECKING:
    from oodbench.engine.predictor import Predictor
    from oodbench.plugin.selector import Selector
    from oodbench.study.study import Study


@dataclass(frozen=True)
class Wanted:
    """Which configurations are scored on test, by seed."""

    configurations: Mapping[int, Sequence[int]]
    afterwards: Mapping[int, Sequence[int]] = field(default_factory=dict)  # others, for diagnosis
    all: bool = False  # whether these are all that finished
    before_selection: bool = False


def open_test(
    study: Study, predictors: Mapping[tuple[int, int], Predictor], wanted: Wanted, meter: Meter
) -> tuple[list[dict[str, Any]], Opening, dict[int, list[Environment]]]:
    """Result rows of the configurations on every test environment and on the training rows, per seed, and those of the
    constant on the test environments: what any model must beat. The rows of test environments have all metrics.

    Rows drawn from the opened environments come along, by seed, so that nothing after this need open them again.
    The test data of one seed is let go before that of the next is made.
    """
    sizes: dict[str, int] = {}
    rows: list[dict[str, Any]] = []
    drawn: dict[int, list[Environment]] = {}
    fingerprints: list[str] = []
    labels = find_selector(study.selector).labels
    for seed in study.seeds:
        whole = _make_test(study, seed)
        fingerprints.append(fingerprint(whole))
        test = [_without_rows(environment, given_rows(environment, labels, seed)) for environment in whole]
        sizes = sizes or {environment.name: len(environment) for environment in test}
        drawn[seed] = draw_test(study.dataset, test)
        models = {number: predictors[number, seed] for number in wanted.configurations[seed]}
        others = {number: predictors[number, seed] for number in wanted.afterwards.get(seed, ())}
        own = Meter(meter.metrics, meter.classes)  # what is missing of others is not so of the chosen
        rows += _score_all(study, models, seed, "train", study.data.train[seed])
        rows += _score_all(study, models, seed, "test", test, meter)
        rows += _score_all(study, others, seed, OPENED, test, own)
        of_constant = study.data.of_constant
        if (of_these := (seed, fingerprints[-1], labels)) not in of_constant:
            of_constant[of_these] = _score_constant(study, seed, test, meter)
        rows += [dict(row) for row in of_constant[of_these]]
    opening = Opening(
        opened_at=datetime.now(UTC).replace(microsecond=0),
        configurations=_each_once(wanted.configurations),
        afterwards=_each_once(wanted.afterwards),
        opened_all=wanted.all,
        before_selection=wanted.before_selection,
        test_fingerprint=_of_all_seeds(fingerprints),
        rows=sizes,
    )
    return rows, opening, drawn


def fingerprint_test_data(study: Study) -> str:
    """As an opening finds it. Only for studies whose choice is on record."""
    return _of_all_seeds(fingerprint(_make_test(study, seed)) for seed in study.seeds)


def _of_all_seeds(fingerprints: Iterable[str]) -> str:
    return hashlib.sha256("".join(fingerprints).encode()).hexdigest()[:16]


def hand_out(study: Study, selector: Selector, seed: int) -> dict[str, Target]:
    """What the selector may see of each test environment before the choice: some x, or a few labelled rows."""
    dataset = study.dataset
    validation = some_rows(dataset, study.data.pooled_validation[seed])
    targets = {}
    for environment in _make_test(study, seed):
        rows = environment.draw(MOST_ROWS)
        if selector.labels:
            rows = environment.take(given_rows(environment, selector.labels, seed))
        y = rows.y if selector.labels else None
        targets[environment.name] = Target(rows.x, y, validation, dataset.task, dataset.classes, rows.weights)
    return targets


def given_rows(environment: Environment, labels: int, seed: int) -> NDArray[np.int64]:
    """The places of the rows that a selector is given with their labels, always the same; a score has the others."""
    if labels and len(environment) <= labels:
        raise StudyFailed(
            f"the selector is given {labels} labelled rows of each test environment, and {environment.name!r} has "
            f"{len(environment)}: none is left to be scored"
        )
    random = np.random.default_rng([seed, *environment.name.encode()])
    return np.sort(random.choice(len(environment), labels, replace=False))


def _without_rows(environment: Environment, places: NDArray[np.int64]) -> Environment:
    if not len(places):
        return environment
    return environment.take(np.delete(np.arange(len(environment)), places))


def _make_test(study: Study, seed: int) -> list[Environment]:
    test = list(study.dataset.test(seed))
    fault = fault_in("test", test, study.dataset, study.data.train[seed][0].x.shape[1])
    fault = fault or study.data.fault_in_weights("test", test)
    if fault:
        raise StudyFailed(fault)
    return test


def _each_once(by_seed: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    return tuple(sorted({configuration for configurations in by_seed.values() for configuration in configurations}))


def _score_all(
    study: Study,
    models: Mapping[int, Predictor],
    seed: int,
    part: str,
    environments: Sequence[Environment],
    meter: Meter | None = None,
) -> list[dict[str, Any]]:
    """Of the models by configuration. One that cannot be scored fails the study, or where it is looked at for
    diagnosis only, has no row."""
    rows = []
    dataset = study.dataset
    for environment, answering in answer_together(list(models.values()), environments):
        scores = score_together(answering, environment, dataset.task, dataset.classes, threads=os.cpu_count() or 1)
        for configuration, model, scored in zip(models, answering, scores, strict=True):
            if isinstance(scored, BaseException):
                if part == OPENED:
                    continue
                raise scored
            where = {"configuration": configuration, "seed": seed, "part": part, "environment": environment.name}
            measured = meter.measure(model, environment) if meter else {}
            rows.append(where | {"rows": len(environment)} | scored | measured)
    return rows


def _score_constant(study: Study, seed: int, test: Sequence[Environment], meter: Meter) -> list[dict[str, Any]]:
    dataset = study.dataset
    train = study.data.pooled_train[seed]
    own = Meter(meter.metrics, meter.classes)  # what is missing of the constant is not so of the models
    constant = constant_model(train.y, dataset.task, dataset.classes, width=train.x.shape[1], weights=train.weights)
    return [
        {"configuration": NO_CONFIGURATION, "seed": seed, "part": CONSTANT, "environment": environment.name}
        | {"rows": len(environment)}
        | score(answering, environment, dataset.task, dataset.classes)
        | own.measure(answering, environment)
        for environment, (answering,) in answer_together([constant], test)
    ]
