"""Studies from the plan to the record in this process, without a search on Ray."""

from __future__ import annotations

import time
from typing import Any

from oodbench.search.jobs import job_of
from oodbench.search.worker import run_pack
from oodbench.study.outcome import Outcome, conclude
from oodbench.study.pack import PackResult
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.record import Chosen, ConcludedStudy
from oodbench.study.spec import StudyOptions
from oodbench.study.study import Study


def planned(method: Any, dataset: Any, **options: Any) -> Study:
    (study,) = plan(resolve(Request([method], [dataset], StudyOptions(**options))), "cpu")
    return study


def concluded(study: Study, written: list[Chosen] | None = None, look: bool = True) -> ConcludedStudy:
    """`written` gets the choice, when it is written down; `look` at the stability, which takes longest."""
    outcome = outcome_of(study, [] if written is None else written, look)
    assert not outcome.record.reason, outcome.record.reason
    return ConcludedStudy(outcome.record, outcome.results)


def outcome_of(study: Study, written: list[Chosen], look: bool = True) -> Outcome:
    results: dict[int, PackResult] = {}

    def run_missing() -> None:
        for pack in study.packs:
            if pack.index not in results:
                job = job_of(study, pack, lambda earlier: results[earlier.index].checkpoint)
                results[pack.index] = run_pack(job.method, pack, job.data, job.setup, job.start, job.stop)

    run_missing()
    while not study.at_top:
        study = study.climb(results)
        run_missing()
    predictors = {
        (trial.configuration, trial.seed): predictor
        for pack in study.packs
        if pack.without is None
        for trial, predictor in zip(pack.trials, results[pack.index].predictors, strict=True)
    }
    return conclude(study, results, predictors, written.append, time.time(), look)
