"""Baselines: studies that somebody ran before, shown beside those of a run that has the same data and terms."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.board.terms import Terms, describe, planned_terms, terms_of
from oodbench.errors import Notice, UnequalTerms, UserError
from oodbench.study.record import ConcludedStudy
from oodbench.submission.adding import BASELINE, labelled
from oodbench.submission.submission import read_submission
from oodbench.version import __version__

if TYPE_CHECKING:
    from oodbench.study.study import Study

ENDING = ".zip"


def read_baselines(source: str | Path) -> list[ConcludedStudy]:
    """The studies of a submission, or of all submissions in a folder and below; of several alike, the newest."""
    path = Path(source)
    files = sorted(path.rglob(f"*{ENDING}")) if path.is_dir() else [path]
    if not files:
        raise UserError(
            f"{path} has no submissions.\nWrite one into it: `oodbench submit -o {path}/baselines{ENDING}`."
        )
    studies = [study for file in files for study in read_submission(file).studies]
    studies.sort(key=lambda study: study.record.provenance.concluded)
    return list({_kind(study): study for study in studies}.values())


def _kind(study: ConcludedStudy) -> tuple[object, ...]:
    record = study.record
    return (record.dataset_id, record.label, record.budget.repeat, terms_of(record))


def beside(studies: Sequence[Study], baselines: Iterable[ConcludedStudy]) -> tuple[ConcludedStudy, ...]:
    """The baselines that have the data and the terms of these studies, labelled so; UnequalTerms where none has."""
    fitting: list[ConcludedStudy] = []
    known = list(baselines)
    for dataset_id, study in {study.dataset_id: study for study in studies}.items():
        here = [baseline for baseline in known if baseline.record.dataset_id == dataset_id]
        if not here:
            there = ", ".join(sorted({repr(baseline.record.dataset_id) for baseline in known}))
            raise UnequalTerms(f"the baselines have no study on {dataset_id!r}.\nThey have: {there}.")
        own = planned_terms(study)
        equal = [baseline for baseline in here if _before_test(baseline) == own]
        if not equal:
            raise _unequal(dataset_id, here[-1], own)
        others = ", ".join(sorted({baseline.label for baseline in here if baseline not in equal}))
        if others:
            warnings.warn(f"baselines on {dataset_id!r} with other terms are left out: {others}", Notice, stacklevel=2)
        fitting += equal
    _notify_of_versions(fitting)
    return tuple(labelled(baseline, BASELINE) for baseline in fitting)


def _before_test(baseline: ConcludedStudy) -> Terms:
    """Without what only the opening of the test environments tells, which a run compares at its end."""
    return replace(terms_of(baseline.record), test="")


def _unequal(dataset_id: str, baseline: ConcludedStudy, own: Terms) -> UnequalTerms:
    theirs, budget = _before_test(baseline), baseline.record.budget
    said, ours = (describe(terms, [theirs, own]) for terms in (theirs, own))
    return UnequalTerms(
        f"the baselines on {dataset_id!r} have other terms: {said}; this run: {ours}.\n"
        f"They were run with --trials {budget.trials} --seeds {budget.seeds} --seed {budget.seed} "
        f"--selector {baseline.record.selector}."
    )


def _notify_of_versions(baselines: Iterable[ConcludedStudy]) -> None:
    others = sorted(
        {baseline.record.provenance.versions.get("oodbench", "?") for baseline in baselines} - {__version__}
    )
    if others:
        warnings.warn(
            f"the baselines were made with oodbench {', '.join(others)}, and this is {__version__}.",
            Notice,
            stacklevel=3,
        )
