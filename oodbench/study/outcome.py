"""What a study came to: its result rows, its selection, its opening of the test data and its ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from oodbench.engine.predictor import Storable
from oodbench.errors import StudyFailed, TrainingFailed, WorkError, one_line
from oodbench.study.assess import Stability, assess
from oodbench.study.pack import PackResult
from oodbench.study.sealed import Opening, open_test
from oodbench.study.selectors import Selection, select
from oodbench.study.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.engine.predictor import Predictor

P = ParamSpec("P")
T = TypeVar("T")

COLUMNS = (
    "configuration",
    "seed",
    "part",
    "environment",
    "rows",
    "loss",
    "error",
    "accuracy",
    "f1",
    "stability",
    "ods",
    "chosen",
)


@dataclass(frozen=True, eq=False)
class Outcome:
    study: Study
    results: pd.DataFrame  # one row per configuration, seed, part and environment
    failures: list[dict[str, Any]]  # one row per training that has no result
    ledger: dict[str, Any]
    started: float  # seconds since the epoch
    selection: Selection | None = None
    opening: Opening | None = None
    models: dict[int, Predictor] = field(default_factory=dict)  # of the chosen configuration, by seed
    stability: Stability | None = None  # of the chosen configuration
    error: str | None = None  # why there is no selection

    @property
    def kept_models(self) -> dict[int, Storable]:
        """Those of the models that the record can keep."""
        return {seed: model for seed, model in self.models.items() if isinstance(model, Storable)}


def conclude(
    study: Study,
    packs: Mapping[int, PackResult],
    predictors: Mapping[tuple[int, int], Predictor],
    write_down: Callable[[Selection], object],
    started: float,
) -> Outcome:
    """Select on validation scores, write the selection down, open the test environments, and look how stable the
    chosen models are."""
    rows, failures = _gather(study, packs)
    ledger = _ledger(study, packs, failures)
    seeds = study.budget.seeds
    try:
        if study.selector == "oracle":  # labelled as such wherever it is shown
            trained = {(row["configuration"], row["seed"]) for row in rows}
            complete = [
                index
                for index in range(len(study.configurations))
                if all((index, seed) in trained for seed in study.seeds)
            ]
            tested, opening, drawn = _ask(open_test, study, predictors, complete, before_selection=True)
            selection = select(_frame([row for row in tested if row["part"] == "test"]), "oracle", seeds)
            write_down(selection)
        else:
            selection = select(_frame(rows), study.selector, seeds)
            write_down(selection)
            chosen = [selection.configuration]
            tested, opening, drawn = _ask(open_test, study, predictors, chosen, before_selection=False)
        models = {seed: predictors[selection.configuration, seed] for seed in study.seeds}
        stability = _ask(assess, study, models, selection.configuration, drawn)
    except (StudyFailed, TrainingFailed) as error:
        reason = f"{error}; first failure: {failures[0]['reason']}" if failures else str(error)
        return Outcome(study, _frame(rows), failures, ledger, started, error=reason)
    results = _frame([*rows, *tested, *stability.pooled])
    results["chosen"] = results["configuration"] == selection.configuration
    results = stability.join(results)
    return Outcome(study, results, failures, ledger, started, selection, opening, models, stability)


def _ask(step: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T:
    """Test data and predictors are somebody else's code: whatever it raises, only this study has failed."""
    try:
        return step(*arguments, **more)
    except WorkError:  # also that of a stored pack that cannot be read, which is to run again
        raise
    except (Exception, SystemExit) as error:
        raise StudyFailed(one_line(error)) from error


def _gather(study: Study, packs: Mapping[int, PackResult]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Validation rows, and the trainings that have none."""
    rows: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    for pack in study.packs:
        result = packs[pack.index]
        if result.stopped:  # trained on, it might have been better or worse
            continue
        rows += result.validation
        for position, reason in sorted(result.failures.items()):
            trial = pack.trials[position]
            failures.append(
                {
                    "configuration": trial.configuration,
                    "seed": trial.seed,
                    "hparams": dict(trial.hparams),
                    "reason": reason,
                }
            )
    return rows, failures


def _ledger(study: Study, packs: Mapping[int, PackResult], failures: list[dict[str, Any]]) -> dict[str, Any]:
    """What the study spent and what it was told."""
    failed = {failure["configuration"] for failure in failures}
    stopped = sum(result.stopped for result in packs.values())
    return {
        "search": study.budget.search,
        "scheduler": study.budget.scheduler,
        "budget_seconds": study.budget.seconds,
        "trials_granted": study.budget.trials,
        "trials": len(study.configurations),
        "complete_trials": len(study.configurations) - len(failed) - stopped,
        "stopped_trials": stopped,
        "seeds": study.budget.seeds,
        "trainings": study.trainings,
        "failed_trainings": len(failures),
        "gradient_steps": sum(result.gradient_steps for result in packs.values()),
        "row_visits": sum(result.row_visits for result in packs.values()),
        "seconds": round(sum(result.seconds for result in packs.values()), 3),
        "device": study.setup.device,
        "information": study.information,
    }


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(COLUMNS)).assign(chosen=False)
    return frame.sort_values(["part", "configuration", "seed"], kind="stable", ignore_index=True)
