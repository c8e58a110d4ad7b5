"""The ledger of a study, what it was granted and what it spent, and the terms on which studies are ranked together.

Terms are equal if as many trials were granted on as many seeds of the same data, to be found in the same way and time.
What was granted counts: a search space that has fewer points is searched whole, and a time may end before the trials.
Gradient steps, row visits and seconds differ between methods by nature; they are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oodbench.errors import UnequalTerms
from oodbench.study.record import StudyRecord
from oodbench.study.spec import describe_search

SHOWN = 6  # digits of a fingerprint


@dataclass(frozen=True)
class Terms:
    trials: int  # granted
    seeds: int
    search: str  # who proposed, who stopped early, in what time
    data: str  # fingerprints: of training and validation data
    test: str  # and of test data


def terms_of(record: StudyRecord) -> Terms:
    budget = record.budget
    return Terms(
        budget.trials,
        budget.seeds,
        ", ".join(describe_search(budget.search, budget.scheduler, budget.seconds)) or "search=random",
        record.data.fingerprint,
        record.test_fingerprint,
    )


def find_unequal(terms: Mapping[str, Terms]) -> dict[str, str]:
    """The labels whose terms are not those of most, and in what they differ; of as many, the larger budget counts."""
    if not terms:
        return {}
    counted = Counter(terms.values())
    usual = max(counted, key=lambda each: (counted[each], each.trials * each.seeds))
    return {label: _describe(own, [own, usual]) for label, own in terms.items() if own != usual}


def refuse_unequal(dataset_id: str, terms: Mapping[str, Terms]) -> None:
    if len(set(terms.values())) < 2:
        return
    groups: dict[Terms, list[str]] = {}
    for label, own in terms.items():
        groups.setdefault(own, []).append(label)
    parts = [f"{', '.join(labels)}: {_describe(shared, list(groups))}" for shared, labels in groups.items()]
    raise UnequalTerms(
        f"studies on {dataset_id!r} differ in budget or data and are not ranked together: {'; '.join(parts)}.\n"
        "Run them alike, choose a budget with --trials and --seeds, or see them side by side with --mixed (mixed=True)."
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _describe(terms: Terms, among: Iterable[Terms]) -> str:
    """What is told of the terms: only that in which there is a difference."""
    others = list(among)
    parts = []
    if len({(other.trials, other.seeds) for other in others}) > 1:
        parts.append(f"{_count(terms.trials, 'trial')} × {_count(terms.seeds, 'seed')}")
    if len({other.search for other in others}) > 1:
        parts.append(terms.search)
    alike = [other for other in others if other.seeds == terms.seeds]  # other seeds are other rows, by nature
    if len({other.data for other in alike}) > 1:
        parts.append(f"training data {terms.data[:SHOWN]}")
    if len({other.test for other in alike}) > 1:
        parts.append(f"test data {terms.test[:SHOWN]}")
    return ", ".join(parts)
