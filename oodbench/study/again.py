"""A recorded study, asked for again from its record: with the plug-ins and the data that are here now."""

from __future__ import annotations

from oodbench.settings.space import fixed_text
from oodbench.study.plan import Request, StudySpec, resolve
from oodbench.study.record import StudyRecord
from oodbench.study.spec import StudyOptions


def spec_of(record: StudyRecord, dataset: str) -> StudySpec:
    """Planned, it has the identity of the recorded study if nothing that makes it has changed.

    `dataset` is its name, or the path of its description, which a record does not have.
    """
    budget = record.budget
    options = StudyOptions(
        settings=record.settings,
        model=record.model,
        model_settings=record.model_settings,
        recipe=record.recipe,
        fix={name: fixed_text(value) for name, value in record.fixed.items()},
        trials=budget.trials,
        seeds=budget.seeds,
        seed=budget.seed,
        search=budget.search,
        scheduler=budget.scheduler,
        budget=budget.seconds,
        selector=record.selector,
        repeats=budget.repeat + 1,
        choose=record.choose,
        open_all=bool(record.opening and record.opening.opened_all),
    )
    return resolve(Request([record.method], [dataset], options))[-1]  # the last of the repeats
