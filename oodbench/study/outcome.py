"""What a study came to: its record, its result rows and the chosen models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from oodbench.encoder.encoder import Encoder
from oodbench.engine.data import Environment
from oodbench.errors import StudyFailed, TrainingFailed, WorkError, one_line
from oodbench.settings.fields import as_dict
from oodbench.study.assess import assess, join
from oodbench.study.closer import look_closer
from oodbench.study.meter import Meter
from oodbench.study.models import how_kept
from oodbench.study.pack import PackResult
from oodbench.study.provenance import provenance_of
from oodbench.study.record import (
    COLUMNS,
    SCHEMA,
    Chosen,
    DataUsed,
    Failure,
    Granted,
    Ledger,
    Opening,
    Setting,
    Stability,
    StudyRecord,
)
from oodbench.study.sealed import open_test
from oodbench.study.selectors import find_selector, needs_models, select
from oodbench.study.spec import Budget
from oodbench.study.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.engine.predictor import Predictor

P = ParamSpec("P")
T = TypeVar("T")
Models = Mapping[int, "Predictor"]
"""Of the chosen configuration, by seed."""


@dataclass(frozen=True, eq=False)
class Outcome:
    record: StudyRecord
    results: pd.DataFrame  # one row per configuration, seed, part and environment
    models: Models = field(default_factory=dict)
    encoders: Mapping[int, Encoder | None] = field(default_factory=dict)  # by seed


def conclude(
    study: Study,
    packs: Mapping[int, PackResult],
    predictors: Mapping[tuple[int, int], Predictor],
    write_down: Callable[[Chosen], object],
    started: float,
) -> Outcome:
    """Select on validation scores, write the selection down, open the test environments, and look how stable the
    chosen models are."""
    rows, failures = _gather(study, packs)
    ledger = _ledger(study, packs, failures)
    meter = Meter.of_task(study.dataset.task, study.dataset.classes)
    try:
        selector = find_selector(study.selector)
        if needs_models(selector):
            rows = _ask(look_closer, study, selector, rows, predictors)
        choice, opening, tested, drawn = _choose_and_open(study, rows, predictors, write_down, meter)
        models = {seed: predictors[choice.configuration, seed] for seed in study.seeds}
        stability, pooled = _ask(assess, study, models, choice.configuration, drawn)
    except (StudyFailed, TrainingFailed) as error:
        reason = str(error) or type(error).__name__
        reason += f"; first failure: {failures[0].reason}" if failures else ""
        return Outcome(_record(study, ledger, failures, started, reason), _frame(rows))
    results = _frame([*rows, *tested, *pooled], meter.metrics)
    results["chosen"] = results["configuration"] == choice.configuration
    results = join(results, stability)
    record = _record(study, ledger, failures, started, "", choice, opening, stability, models, meter)
    return Outcome(record, results, models, study.data.encoders)


def _choose_and_open(
    study: Study,
    rows: list[dict[str, Any]],
    predictors: Mapping[tuple[int, int], Predictor],
    write_down: Callable[[Chosen], object],
    meter: Meter,
) -> tuple[Chosen, Opening, list[dict[str, Any]], dict[int, list[Environment]]]:
    """The choice, what the opening found, result rows of the test environments, and rows drawn from these by seed."""
    seeds = study.budget.seeds
    if study.selector == "oracle":  # labelled as such wherever it is shown
        trained = {(row["configuration"], row["seed"]) for row in rows}
        complete = [
            index for index in range(len(study.configurations)) if all((index, seed) in trained for seed in study.seeds)
        ]
        tested, opening, drawn = _ask(open_test, study, predictors, complete, before_selection=True, meter=meter)
        scores = _frame([row for row in tested if row["part"] == "test"])
        choice = select(scores, "oracle", seeds, study.configurations)
        write_down(choice)
    else:
        choice = select(
            _frame(rows, [find_selector(study.selector).metric]), study.selector, seeds, study.configurations
        )
        write_down(choice)
        tested, opening, drawn = _ask(
            open_test, study, predictors, [choice.configuration], before_selection=False, meter=meter
        )
    return choice, opening, tested, drawn


def _ask(step: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T:
    """Test data and predictors are somebody else's code: whatever it raises, only this study has failed."""
    try:
        return step(*arguments, **more)
    except WorkError:  # also that of a stored pack that cannot be read, which is to run again
        raise
    except (Exception, SystemExit) as error:
        raise StudyFailed(one_line(error)) from error


def _gather(study: Study, packs: Mapping[int, PackResult]) -> tuple[list[dict[str, Any]], list[Failure]]:
    """Validation rows, and the trainings that have none."""
    rows: list[dict[str, Any]] = []
    failures: list[Failure] = []
    for pack in study.packs:
        result = packs[pack.index]
        if result.stopped:  # trained on, it might have been better or worse
            continue
        rows += result.validation
        for position, reason in sorted(result.failures.items()):
            trial = pack.trials[position]
            failures.append(Failure(trial.configuration, trial.seed, reason))
    return rows, failures


def _ledger(study: Study, packs: Mapping[int, PackResult], failures: list[Failure]) -> Ledger:
    failed = {failure.configuration for failure in failures}
    stopped = sum(result.stopped for result in packs.values())
    return Ledger(
        trials=len(study.configurations),
        complete_trials=len(study.configurations) - len(failed) - stopped,
        stopped_trials=stopped,
        trainings=study.trainings,
        failed_trainings=len(failures),
        gradient_steps=sum(result.gradient_steps for result in packs.values()),
        row_visits=sum(result.row_visits for result in packs.values()),
        seconds=round(sum(result.seconds for result in packs.values()), 3),
        device=study.setup.device,
    )


def _record(
    study: Study,
    ledger: Ledger,
    failures: list[Failure],
    started: float,
    reason: str,
    choice: Chosen | None = None,
    opening: Opening | None = None,
    stability: Stability | None = None,
    models: Models | None = None,
    meter: Meter | None = None,
) -> StudyRecord:
    return StudyRecord(
        schema=SCHEMA,
        study_id=study.study_id,
        search_id=study.search_id,
        repeat_of=study.repeat_of if study.budget.repeat else "",
        label=study.label,
        method=study.method_name,
        ranked=study.method.ranked,
        dataset=study.dataset_name,
        dataset_id=study.dataset_id,
        settings=_settings(study.dataset),
        task=study.dataset.task,
        notice=study.dataset.notice,
        model=study.setup.model.name,
        model_settings=_settings(study.setup.model),
        recipe=_settings(study.setup.recipe),
        fixed=dict(study.fixed),
        budget=_granted(study.budget),
        selector=study.selector,
        information=tuple(study.information),
        status="FAILED" if reason else "FINISHED",
        reason=reason,
        ledger=ledger,
        configurations=tuple(study.configurations),
        failures=tuple(failures),
        choice=choice,
        data=_data_used(study),
        opening=opening,
        metrics=tuple(meter.metrics) if meter else (),
        missing=dict(meter.missing) if meter else {},
        stability=stability,
        models=how_kept(models or {}),
        provenance=provenance_of(study, started),
    )


def _granted(budget: Budget) -> Granted:
    return Granted(
        budget.trials,
        budget.seeds,
        budget.seed,
        budget.repeat,
        budget.search,
        budget.scheduler,
        budget.seconds,
    )


def _data_used(study: Study) -> DataUsed:
    data, first = study.data, study.seeds[0]
    return DataUsed(
        fingerprint=data.fingerprint,
        validation_fingerprint=data.validation_fingerprint,
        features=data.train[first][0].x.shape[1],
        columns=study.dataset.columns,
        training_rows={environment.name: len(environment) for environment in data.train[first]},
        validation_rows={environment.name: len(environment) for environment in data.validation[first]},
    )


def _settings(instance: Any) -> dict[str, Setting]:
    return {name: _plain(value) for name, value in as_dict(instance).items()}


def _plain(value: Any) -> Setting:
    """A setting as its own type where JSON has it; a plug-in's may have any."""
    if isinstance(value, tuple | list):
        return tuple(part if isinstance(part, bool | int | float | str) else str(part) for part in value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _frame(rows: list[dict[str, Any]], metrics: Iterable[str] = ()) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(dict.fromkeys([*COLUMNS, *metrics]))).assign(chosen=False)
    return frame.sort_values(["part", "configuration", "seed"], kind="stable", ignore_index=True)
