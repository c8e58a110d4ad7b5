"""What a submission claims, held against what is installed here: no training is needed for that."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from oodbench.errors import one_line
from oodbench.plugin.selector import told_to
from oodbench.study.outcome import complete_configurations, data_used, rows_for
from oodbench.study.record import CONSTANT, ConcludedStudy, StudyRecord
from oodbench.study.sealed import fingerprint_test_data
from oodbench.study.selectors import find_selector, select
from oodbench.submission.manifest import sources_of
from oodbench.submission.planning import Planned
from oodbench.submission.submission import Submission, tables_of
from oodbench.version import __version__

if TYPE_CHECKING:
    from oodbench.study.record import Chosen
    from oodbench.study.study import Study

SHOWN = 6  # digits of a fingerprint
ROUNDING = 1e-9  # of scores that are computed again from the same rows, relative


@dataclass(frozen=True)
class Finding:
    """A check of a study, or of the file as a whole, and what is wrong."""

    study: str  # its title; empty for the file
    check: str
    fault: str = ""  # empty where it is right

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ok": not self.fault}


def check_submission(submission: Submission, planned: Planned) -> list[Finding]:
    """All checks in their order. Those of a study that rest on one that failed are left out."""
    findings = [Finding("", "hashes of all files"), Finding("", "tables", _tables_fault(submission))]
    for study in submission.studies:
        title = study.record.title
        for check, fault in _check_study(study, submission.manifest.sources[study.record.study_id], planned):
            findings.append(Finding(title, check, fault))
            if fault:
                break
    return findings


def _tables_fault(submission: Submission) -> str:
    expected = tables_of(submission.studies)
    wrong = [name for name, content in expected.items() if submission.tables.get(name) != content]
    return f"{wrong[0]} does not have what its studies have" if wrong else ""


def _check_study(study: ConcludedStudy, claimed: Mapping[str, str], planned: Planned) -> Iterator[tuple[str, str]]:
    record = study.record
    yield "version of oodbench", _version_fault(record)
    yield "plug-ins", planned.faults.get(record.study_id, "")
    again = planned.studies[record.study_id]
    yield "source code", _sources_fault(claimed, again)
    yield "training and validation data", _data_fault(record, record.data.fingerprint, again.data.fingerprint)
    yield "terms", _terms_fault(record, again)
    yield "configurations", _configurations_fault(record, again) or _rungs_fault(study, again)
    yield "choice", _choice_fault(study, again)
    yield "test data", _test_fault(study, again)


def _version_fault(record: StudyRecord) -> str:
    made = record.provenance.versions.get("oodbench", "an unknown version")
    return "" if made == __version__ else f"it was made with oodbench {made}, and this is {__version__}"


def _sources_fault(claimed: Mapping[str, str], again: Study) -> str:
    here = sources_of(again)
    differing = [kind for kind in here if claimed.get(kind) != here[kind]]
    return f"the source code of its {' and '.join(differing)} is not what is installed here" if differing else ""


def _data_fault(record: StudyRecord, recorded: str, here: str) -> str:
    if recorded == here:
        return ""
    return f"{record.dataset} here is another version: its data are {here[:SHOWN]}, and the study's {recorded[:SHOWN]}"


def _test_fault(study: ConcludedStudy, again: Study) -> str:
    """A board counts all environments that the rows name: one more, with a low error, would make a better mean."""
    record, results = study.record, study.results
    assert results is not None
    try:
        fault = _data_fault(record, record.test_fingerprint, fingerprint_test_data(again))
        names = {environment.name for environment in again.dataset.test(again.seeds[0])}
    except (Exception, SystemExit) as error:  # of the dataset
        return one_line(error)
    scored = set(results.loc[results["part"].isin(["test", CONSTANT]), "environment"])
    return fault or ("" if scored == names else "its test environments are not those of the dataset")


def _terms_fault(record: StudyRecord, again: Study) -> str:
    """The identity of a study covers its budget, settings, recipe and selector. Its label may have a preset's name."""
    if again.study_id != record.study_id:
        return "its budget, settings, recipe or selector are not those that it was run with: its identity is another's"
    method = again.method
    names = [record.method, *(f"{record.method}:{preset}" for preset in type(method).presets)]
    name, _, differing = record.label.partition(" ")
    said: dict[str, tuple[object, object]] = {
        "label": (name in names and bool(re.fullmatch(r"(\(.+\))?", differing)), True),
        "rank": (record.ranked, method.ranked),
        "name of the data": (record.dataset_id, again.dataset_id),
        "repetition": (record.repeat_of, again.repeat_of if again.budget.repeat else ""),
        "task": (record.task, again.dataset.task),
        "notice": (record.notice, again.notice),
        "information": (record.information, tuple(again.information)),
        "knowledge of the choice": (record.choice_told, told_to(find_selector(record.selector))),
        "number of trials": (record.ledger.trials, len(record.configurations)),
        "description of the data": (record.data, data_used(again)),
    }
    wrong = [what for what, (claimed, true) in said.items() if claimed != true]
    return f"its {wrong[0]} is not what its plug-ins say" if wrong else ""


def _configurations_fault(record: StudyRecord, again: Study) -> str:
    if not again.budget.drawn_up_front:
        return "" if len(record.configurations) <= record.budget.trials else "it tried more than it was granted"
    drawn = [dict(hparams) for hparams in record.configurations] == again.configurations
    return "" if drawn else "its configurations are not those that its budget draws"


def _rungs_fault(study: ConcludedStudy, again: Study) -> str:
    """Of a search by halving. Which of a rung were the best is seen only by running it again."""
    spent, results = study.record.ledger.rungs, study.results
    assert results is not None
    sizes = [len(rung.configurations) for rung in spent]
    planned = [rung.trials for rung in again.rungs]
    if [rung.steps for rung in spent] != [rung.steps for rung in again.rungs] or sizes[:1] != planned[:1]:
        return "its rungs are not those of its budget"
    if any(size > most for size, most in zip(sizes, planned, strict=True)):
        return "more configurations went on than its budget allows"
    scored = set(results.loc[results["part"] == "validation", "configuration"])
    return "" if not spent or scored <= set(spent[-1].configurations) else "it scores configurations that were stopped"


def _choice_fault(study: ConcludedStudy, again: Study) -> str:
    """The selector, asked once more; one that looks at stability cannot be asked without the models."""
    record, results = study.record, study.results
    assert record.choice is not None
    assert results is not None
    selector = find_selector(record.selector)
    if selector.needs_stability:
        return ""
    import pandas as pd

    rows: list[dict[str, Any]] = results.to_dict("records")  # type: ignore[assignment]  # names of columns are texts
    own = [row for row in rows if row["part"] == "test"]  # what the oracle sees
    if record.selector != "oracle":
        own = rows_for(again, selector, rows, complete_configurations(again, rows))
    scores = pd.DataFrame(own, columns=results.columns)
    try:
        choice = select(scores, record.selector, record.budget.seeds, record.configurations, record.choose)
    except (Exception, SystemExit) as error:  # of the selector
        return one_line(error)
    return "" if _same_choice(record.choice, choice) else "its validation scores choose another configuration"


def _same_choice(recorded: Chosen, again: Chosen) -> bool:
    picked = [(choice.configuration, dict(choice.by_seed), dict(choice.without_seed)) for choice in (recorded, again)]
    scores = recorded.scores.keys() == again.scores.keys() and all(
        math.isclose(recorded.scores[number], again.scores[number], rel_tol=ROUNDING) for number in recorded.scores
    )
    return picked[0] == picked[1] and scores and dict(recorded.hparams) == dict(again.hparams)
