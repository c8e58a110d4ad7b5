"""The ledger of a study, what it was granted and what it spent, and the terms on which studies are ranked together.

Terms are equal if as many trials were granted on as many seeds of the same data, to be found in the same way and time,
and if one is chosen for the same, the study or each seed, by what tells as much: validation scores, or more.
What was granted counts: a search space that has fewer points is searched whole, and a time may end before the trials.
Gradient steps, row visits and seconds differ between methods by nature; they are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oodbench.errors import UnequalTerms
from oodbench.plugin.selector import told_to
from oodbench.study.record import StudyRecord
from oodbench.study.selectors import find_selector
from oodbench.study.spec import describe_search
from oodbench.study.study import Study

SHOWN = 6  # digits of a fingerprint


@dataclass(frozen=True)
class Terms:
    trials: int  # granted
    seeds: int
    search: str  # who proposed, who stopped early, in what time
    choose: str  # what got a configuration of its own: the study, or each seed
    choice_told: str  # what the choice went by besides validation scores
    data: str  # fingerprints: of training and validation data
    test: str  # and of test data


def terms_of(record: StudyRecord) -> Terms:
    budget = record.budget
    return Terms(
        budget.trials,
        budget.seeds,
        ", ".join(describe_search(budget.search, budget.scheduler, budget.seconds)) or "search=random",
        record.choose,
        record.choice_told,
        record.data.fingerprint,
        record.test_fingerprint,
    )


def planned_terms(study: Study) -> Terms:
    """Of a study that is still to be run: nothing is known of its test data."""
    budget = study.budget
    return Terms(
        budget.trials,
        budget.seeds,
        ", ".join(budget.deviations) or "search=random",
        study.choose,
        told_to(find_selector(study.selector)),
        study.data.fingerprint,
        "",
    )


def find_unequal(terms: Mapping[str, Terms]) -> dict[str, str]:
    """The labels whose terms are not those of most, and in what they differ; of as many, the larger budget counts."""
    if not terms:
        return {}
    counted = Counter(terms.values())
    usual = max(counted, key=lambda own: (counted[own], own.trials * own.seeds))
    return {label: describe(own, [own, usual]) for label, own in terms.items() if own != usual}


def refuse_unequal(dataset_id: str, terms: Mapping[str, Terms]) -> None:
    if len(set(terms.values())) < 2:
        return
    groups: dict[Terms, list[str]] = {}
    for label, own in terms.items():
        groups.setdefault(own, []).append(label)
    parts = [f"{', '.join(labels)}: {describe(own, list(groups))}" for own, labels in groups.items()]
    raise UnequalTerms(
        f"studies on {dataset_id!r} differ in budget, data or choice and are not ranked together: {'; '.join(parts)}.\n"
        "Run all with one budget, choose one with --trials, --seeds or --selector, or show all with --mixed."
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def describe(own: Terms, among: Iterable[Terms]) -> str:
    """The terms of a study, as far as they differ among these."""
    compared = list(among)
    parts = []
    if len({(terms.trials, terms.seeds) for terms in compared}) > 1:
        parts.append(f"{_count(own.trials, 'trial')} × {_count(own.seeds, 'seed')}")
    if len({terms.search for terms in compared}) > 1:
        parts.append(own.search)
    if len({terms.choose for terms in compared}) > 1:
        parts.append(f"a configuration for each {own.choose}")
    if len({terms.choice_told for terms in compared}) > 1:
        parts.append(own.choice_told or "chosen on validation scores alone")
    alike = [terms for terms in compared if terms.seeds == own.seeds]  # other seeds are other rows, by nature
    if len({terms.data for terms in alike}) > 1:
        parts.append(f"training data {own.data[:SHOWN]}")
    if len({terms.test for terms in alike}) > 1:
        parts.append(f"test data {own.test[:SHOWN]}")
    return ", ".join(parts)
