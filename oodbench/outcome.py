"""What a study came to: its result rows, its selection, its opening of the test data and its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oodbench.assess import Stability, assess
from oodbench.errors import one_line
from oodbench.evaluate import Opening, open_test
from oodbench.select import Selection, select
from oodbench.study import Study
from oodbench.trial import PackResult

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.method import Predictor
    from oodbench.packstore import PackStore

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


def conclude(study: Study, packs: Mapping[int, PackResult], store: PackStore, started: float) -> Outcome:
    """Select on validation scores, write the selection down, open the test environments, and look how stable the
    chosen models are."""
    rows, failures, predictors = _gather(study, packs)
    ledger = _ledger(study, packs, failures)
    seeds = study.budget.seeds
    try:
        if study.selector == "oracle":  # labelled as such wherever it is shown
            complete = [
                index
                for index in range(len(study.configurations))
                if all((index, seed) in predictors for seed in study.seeds)
            ]
            tested, opening, opened = open_test(study, predictors, complete, before_selection=True)
            selection = select(_frame([row for row in tested if row["part"] == "test"]), "oracle", seeds)
            store.write_json("selection.json", selection.as_dict())
        else:
            selection = select(_frame(rows), study.selector, seeds)
            store.write_json("selection.json", selection.as_dict())
            tested, opening, opened = open_test(study, predictors, [selection.configuration], before_selection=False)
        models = {seed: predictors[selection.configuration, seed] for seed in study.seeds}
        stability = assess(study, models, selection.configuration, opened)
    except (Exception, SystemExit) as error:  # predictors and test data are somebody else's code
        reason = one_line(error) + (f"; first failure: {failures[0]['reason']}" if failures else "")
        return Outcome(study, _frame(rows), failures, ledger, started, error=reason)
    results = _frame([*rows, *tested, *stability.pooled])
    results["chosen"] = results["configuration"] == selection.configuration
    results = stability.join(results)
    return Outcome(study, results, failures, ledger, started, selection, opening, models, stability)


def _gather(
    study: Study, packs: Mapping[int, PackResult]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[tuple[int, int], Predictor]]:
    rows: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    predictors: dict[tuple[int, int], Predictor] = {}
    for pack in study.packs:
        result = packs[pack.index]
        rows += result.validation
        for position, trial in enumerate(pack.trials):
            if position in result.failures:
                failures.append(
                    {
                        "configuration": trial.configuration,
                        "seed": trial.seed,
                        "hparams": dict(trial.hparams),
                        "reason": result.failures[position],
                    }
                )
            else:
                predictors[trial.configuration, trial.seed] = result.predictors[position]
    return rows, failures, predictors


def _ledger(study: Study, packs: Mapping[int, PackResult], failures: list[dict[str, Any]]) -> dict[str, Any]:
    """What the study spent and what it was told."""
    return {
        "trials_granted": study.budget.trials,
        "trials": len(study.configurations),
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
