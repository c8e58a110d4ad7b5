"""What a study came to: its record, its result rows and the chosen models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from oodbench.encoder.encoder import Encoder
from oodbench.engine.data import Environment
from oodbench.errors import StudyFailed, TrainingFailed, WorkError, one_line
from oodbench.plugin.selector import part_of, sees_target, told_to
from oodbench.settings.fields import as_dict
from oodbench.study.assess import assess, join, score_pooled
from oodbench.study.closer import estimate, look_closer
from oodbench.study.coefficients import score_coefficients
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
    RungSpent,
    Setting,
    Stability,
    StudyRecord,
)
from oodbench.study.sealed import Wanted, open_test
from oodbench.study.selectors import find_selector, needs_models, select
from oodbench.study.spec import Budget
from oodbench.study.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.engine.predictor import Predictor
    from oodbench.plugin.selector import Selector

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
    look: bool = True,
    say: Callable[[str], object] = lambda text: None,
) -> Outcome:
    """Select on validation scores, write the selection down, open the test environments, and `look` how stable the
    chosen models are, which may take long: `say` is told."""
    rows, failures = _gather(study, packs)
    ledger = _ledger(study, packs, failures)
    meter = Meter.of_task(study.dataset.task, study.dataset.classes)
    try:
        selector = find_selector(study.selector)
        if needs_models(selector) or study.open_all:
            validation = [row for row in rows if row["part"] == "validation"]
            others = [row for row in rows if row["part"] != "validation"]
            rows = _ask(look_closer, study, selector, validation, predictors) + others
        if sees_target(selector):
            validation = [row for row in rows if row["part"] == "validation"]
            rows = [*rows, *_ask(estimate, study, selector, validation, predictors)]
        choice, opening, tested, drawn = _choose_and_open(study, rows, predictors, write_down, meter)
        models = {seed: predictors[choice.of_seed(seed), seed] for seed in study.seeds}
        pooled = _ask(score_pooled, study, models, choice)
        pooled += _ask(score_coefficients, study, models, choice)
        stability = _ask(assess, study, models, drawn, say) if look else None
    except (StudyFailed, TrainingFailed) as error:
        reason = str(error) or type(error).__name__
        reason += f"; first failure: {failures[0].reason}" if failures else ""
        return Outcome(_record(study, ledger, failures, started, reason), _frame(rows))
    results = _frame([*rows, *tested, *pooled], meter.metrics)
    results["chosen"] = results["configuration"] == results["seed"].map(choice.of_seed)
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
    among = (study.selector, study.budget.seeds, study.configurations, study.choose)
    if study.selector == "oracle":  # labelled as such wherever it is shown
        wanted = Wanted(dict.fromkeys(study.seeds, complete_configurations(study, rows)), before_selection=True)
        tested, opening, drawn = _ask(open_test, study, predictors, wanted, meter)
        choice = select(_frame([row for row in tested if row["part"] == "test"]), *among)
        write_down(choice)
    else:
        selector, complete = find_selector(study.selector), complete_configurations(study, rows)
        choice = select(_frame(rows_for(study, selector, rows, complete), [selector.metric]), *among)
        write_down(choice)
        wanted = _wanted(study, choice, complete)
        tested, opening, drawn = _ask(open_test, study, predictors, wanted, meter)
    return choice, opening, tested, drawn


def complete_configurations(study: Study, rows: list[dict[str, Any]]) -> list[int]:
    """The configurations that finished on every seed."""
    trained = {(row["configuration"], row["seed"]) for row in rows if row["part"] == "validation"}
    numbers = range(len(study.configurations))
    return [number for number in numbers if all((number, seed) in trained for seed in study.seeds)]


def rows_for(study: Study, selector: Selector, rows: list[dict[str, Any]], complete: list[int]) -> list[dict[str, Any]]:
    """What the selector goes by. Of a configuration that was to be trained without each environment, all or nothing."""
    own = [row for row in rows if row["part"] == part_of(selector) and row["configuration"] in complete]
    if not selector.leaves_out:
        return own
    counted = Counter((row["configuration"], row["seed"]) for row in own)
    whole = {model for model, count in counted.items() if count == len(study.left_out)}
    return [row for row in own if (row["configuration"], row["seed"]) in whole]


def _wanted(study: Study, choice: Chosen, complete: list[int]) -> Wanted:
    """The choice; and for diagnosis all others if that is asked for, or what is chosen without a seed, on this seed."""
    chosen = {seed: [choice.of_seed(seed)] for seed in study.seeds}
    if study.open_all:
        others = {seed: [number for number in complete if number not in chosen[seed]] for seed in study.seeds}
    else:
        others = {seed: [number] for seed, number in choice.without_seed.items() if number not in chosen[seed]}
    return Wanted(chosen, others, study.open_all)


def _ask(step: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T:
    """Test data and predictors are somebody else's code: whatever it raises, only this study has failed."""
    try:
        return step(*arguments, **more)
    except WorkError:  # also that of a stored pack that cannot be read, which is to run again
        raise
    except (Exception, SystemExit) as error:
        raise StudyFailed(one_line(error)) from error


def _gather(study: Study, packs: Mapping[int, PackResult]) -> tuple[list[dict[str, Any]], list[Failure]]:
    """Validation rows, also of models trained without an environment, and the trainings that have none."""
    rows: list[dict[str, Any]] = []
    failures: list[Failure] = []
    for pack in study.packs:
        result = packs[pack.index]
        if result.stopped:  # trained on, it might have been better or worse
            continue
        if pack.rung + 1 >= len(study.rungs):  # of a lower rung, too, the training goes on, or it was stopped
            rows += result.validation
        for position, reason in sorted(result.failures.items()):
            trial = pack.trials[position]
            if pack.without is not None:
                reason = f"without environment {study.data.train[trial.seed][pack.without].name!r}: {reason}"
            failures.append(Failure(trial.configuration, trial.seed, reason))
    return rows, failures


def _ledger(study: Study, packs: Mapping[int, PackResult], failures: list[Failure]) -> Ledger:
    failed = {failure.configuration for failure in failures}
    rungs = _rungs(study, packs)
    stopped = sum(result.stopped for result in packs.values())
    if rungs:
        stopped = len(set(rungs[0].configurations) - set(rungs[-1].configurations) - failed)
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
        rungs=rungs,
    )


def _rungs(study: Study, packs: Mapping[int, PackResult]) -> tuple[RungSpent, ...]:
    spent = []
    for number, rung in enumerate(study.rungs):
        own = [pack for pack in study.packs if pack.rung == number]
        configurations = sorted({trial.configuration for pack in own for trial in pack.trials})
        steps = sum(packs[pack.index].gradient_steps for pack in own)
        spent.append(RungSpent(rung.steps, tuple(configurations), steps, number == 0 or not study.method.pauses))
    return tuple(spent)


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
        notice=study.notice,
        model=study.setup.model.name,
        model_settings=_settings(study.setup.model),
        recipe=_settings(study.setup.recipe),
        fixed=dict(study.fixed),
        budget=_granted(study.budget),
        selector=study.selector,
        choose=study.choose,
        choice_told=told_to(find_selector(study.selector)),
        information=tuple(study.information),
        status="FAILED" if reason else "FINISHED",
        reason=reason,
        ledger=ledger,
        configurations=tuple(study.configurations),
        failures=tuple(failures),
        choice=choice,
        data=data_used(study),
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


def data_used(study: Study) -> DataUsed:
    data, first, columns = study.data, study.seeds[0], study.dataset.columns
    return DataUsed(
        fingerprint=data.fingerprint,
        validation_fingerprint=data.validation_fingerprint,
        features=data.train[first][0].x.shape[1],
        columns=None if columns is None else tuple(columns),
        training_rows={environment.name: len(environment) for environment in data.train[first]},
        validation_rows={environment.name: len(environment) for environment in data.validation[first]},
        scaled=bool(study.dataset.target_is_scaled),
        left_out=dict(study.dataset.rows_left_out),
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
