"""The ledger of a study, what it was granted and what it spent, and the terms on which studies are ranked together.

Terms are equal if as many trials were granted on as many seeds of the same data, to be found in the same way and time.
What was granted counts: a search space that has fewer points is searched whole, and a time may end before the trials.
Gradient steps, row visits and seconds differ between methods by nature; they are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oodbench.errors import UnequalTerms
from oodbench.study.spec import Budget

if TYPE_CHECKING:
    from oodbench.study.record import StudyRecord

SHOWN = 6  # digits of a fingerprint


@dataclass(frozen=True)
class Terms:
    trials: int  # granted
    seeds: int
    search: str  # who proposed, who stopped early, in what time
    data: str  # fingerprints: of training and validation data
    test: str  # and of test data


def terms_of(record: StudyRecord) -> Terms:
    granted = record.ledger
    way = Budget(search=granted.search, scheduler=granted.scheduler, budget=granted.budget_seconds).deviations
    return Terms(
        granted.trials_granted or record.trials,
        record.seeds,
        ", ".join(way) or "search=random",
        record.fingerprint,
        record.test_fingerprint,
    )


def find_unequal(terms: Mapping[str, Terms]) -> dict[str, str]:
    """The labels whose terms are not those of most, and in what they differ; of as many, the larger budget counts."""
    if not terms:
        return {}
    counted = Counter(terms.values())
    usual = max(counted, key=lambda some: (counted[some], some.trials * some.seeds))
    return {label: _describe(some, [some, usual]) for label, some in terms.items() if some != usual}


def refuse_unequal(dataset_id: str, terms: Mapping[str, Terms]) -> None:
    if len(set(terms.values())) < 2:
        return
    groups: dict[Terms, list[str]] = {}
    for label, some in terms.items():
        groups.setdefault(some, []).append(label)
    parts = [f"{', '.join(labels)}: {_describe(some, list(groups))}" for some, labels in groups.items()]
    raise UnequalTerms(
        f"studies on {dataset_id!r} differ in budget or data and are not ranked together: {'; '.join(parts)}.\n"
        "Run them alike, choose a budget with --trials and --seeds, or see them side by side with --mixed (mixed=True)."
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _describe(some: Terms, among: Iterable[Terms]) -> str:
    """What is told of some terms: only that in which there is a difference."""
    others = list(among)
    parts = []
    if len({(one.trials, one.seeds) for one in others}) > 1:
        parts.append(f"{_count(some.trials, 'trial')} × {_count(some.seeds, 'seed')}")
    if len({one.search for one in others}) > 1:
        parts.append(some.search)
    alike = [one for one in others if one.seeds == some.seeds]  # other seeds are other rows, by nature
    if len({one.data for one in alike}) > 1:
        parts.append(f"training data {some.data[:SHOWN]}")
    if len({one.test for one in alike}) > 1:
        parts.append(f"test data {some.test[:SHOWN]}")
    return ", ".join(parts)
