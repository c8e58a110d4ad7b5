"""A night compared with its baseline: what needs attention, and why.

On the machine of the baseline every number must be the same, to the last bit; any difference is a finding, worse
or not. On another machine rounding differs, and the statistics of `oodbench compare` decide, on differences beyond
rounding. Speed is compared as ratios on both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from oodbench.board.cells import MethodScores
from oodbench.board.comparison import Compared, Comparison, compare_all
from oodbench.board.moderated import FEWEST_UNITS
from oodbench.nightly.baseline import Night, StudyState
from oodbench.report.text import count_text, interval_text

SLOWER = 1.5  # times the ratio of the baseline; docs/nightly.md has the spread that was measured
RELEVANT = 1e-3  # of the mean error; in float32, rounding that another machine does otherwise can become consistent
KEYS = ["seed", "environment"]


@dataclass(frozen=True)
class Finding:
    """Two lines: what is wrong, and by how much or what to do."""

    kind: str
    about: str  # a method on a setting, or a method
    what: str
    more: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.about} {self.what}\n    {self.more}"


@dataclass(frozen=True)
class SpeedCompared:
    method: str
    before: float | None
    now: float | None

    @property
    def times(self) -> float | None:
        return None if self.before is None or self.now is None else self.now / self.before

    @property
    def slower(self) -> bool:
        return self.times is not None and self.times > SLOWER


@dataclass(frozen=True)
class Judgement:
    before: Night
    now: Night
    comparison: Comparison
    speed: list[SpeedCompared]
    findings: list[Finding]
    elsewhere: list[str]  # in what the machine differs from the baseline's
    notices: list[str]

    def as_dict(self) -> dict[str, Any]:
        return {
            "findings": [asdict(finding) for finding in self.findings],
            "same_machine": not self.elsewhere,
            "differs_in": self.elsewhere,
            "notices": self.notices,
            "comparison": self.comparison.as_dict(),
            "speed": [asdict(speed) | {"times": speed.times} for speed in self.speed],
            "baseline": {"date": self.before.date, "git_commit": self.before.git_commit},
            "machine": asdict(self.now.machine),
        }


def judge(before: Night, now: Night, accept: str) -> Judgement:
    """`accept` is the command that makes the night the new baseline."""
    elsewhere = before.machine.differences(now.machine)
    comparison = compare_all(before.scores, now.scores)
    remedy = f"If this is intended, `{accept}` makes it the baseline."
    names = list(dict.fromkeys([*before.speed, *now.speed, *now.speed_faults]))
    speed = [SpeedCompared(name, before.speed.get(name), now.speed.get(name)) for name in names]
    findings = [
        *_in_numbers(comparison, before, now, not elsewhere, remedy),
        *_in_trainings(before, now, remedy),
        *_in_speed(speed, now, remedy),
    ]
    return Judgement(before, now, comparison, speed, findings, elsewhere, _notices(before, now, elsewhere))


def _in_numbers(
    comparison: Comparison, before: Night, now: Night, same_machine: bool, remedy: str
) -> Iterator[Finding]:
    studies = {(study.dataset_id, study.method): study for study in now.studies}
    tables = [{(scores.dataset_id, scores.method): scores for scores in night.scores} for night in (before, now)]
    for row in comparison.rows:
        key = row.dataset_id, row.method
        where = f"{row.method} on {row.dataset_id}"
        if row.verdict == "worse" and (same_machine or _relative(row) > RELEVANT):
            yield Finding("worse", where, f"has {_change(row)}", f"{_how_sure(row)} {remedy}")
        elif row.verdict == "not comparable":
            yield Finding("not comparable", where, f"cannot be compared: {row.reason}", remedy)
        elif row.verdict == "only in A":
            if key not in studies:
                yield Finding("missing", where, "is in the baseline but was not run", remedy)
        elif row.verdict in ("only in B", "failed in A"):
            if not studies[key].failure:
                yield Finding("new", where, "has no result in the baseline to compare with", remedy)
        elif same_machine and row.a is not None:
            differing, cells = _differing(*(table[key] for table in tables))
            if differing:
                what = f"differs from the baseline in {differing} of {cells} scores, on the same machine"
                yield Finding("changed", where, what, f"It has {_change(row)}. {remedy}")


def _in_trainings(before: Night, now: Night, remedy: str) -> Iterator[Finding]:
    earlier_studies = {(study.dataset_id, study.method): study for study in before.studies}
    for study in now.studies:
        where = f"{study.method} on {study.dataset_id}"
        earlier = earlier_studies.get((study.dataset_id, study.method), StudyState(study.dataset_id, study.method, 0))
        if study.failure and not earlier.failure:
            yield Finding("failed", where, "has no result", f"{_one_line(study.failure)} {remedy}")
        elif study.failed_trainings > earlier.failed_trainings:
            failed = count_text(study.failed_trainings, "failed training")
            what = f"has {failed}, {earlier.failed_trainings} in the baseline"
            yield Finding(
                "failed trainings", where, what, f"The record has the reasons; --directory DIR keeps it. {remedy}"
            )


def _in_speed(speed: Sequence[SpeedCompared], now: Night, remedy: str) -> Iterator[Finding]:
    for timed in speed:
        method = timed.method
        if timed.slower and timed.times is not None:
            what = f"takes {timed.times:.2f} times the CPU time of the baseline"
            more = f"{timed.now:.2f} times the reference work, {timed.before:.2f} in the baseline"
            yield Finding("slower", method, what, f"{more}; up to a factor of {SLOWER} is allowed. {remedy}")
        elif timed.before is not None and timed.now is None and method in now.speed_faults:
            yield Finding("no speed", method, "cannot be timed", f"{_one_line(now.speed_faults[method])} {remedy}")


def _notices(before: Night, now: Night, elsewhere: Sequence[str]) -> list[str]:
    notices = []
    if elsewhere:
        notices.append(f"the machine is not the baseline's ({'; '.join(elsewhere)}): only statistical tests decide")
    units = {len(set(scores.table["seed"])) for scores in now.scores if scores.table is not None}
    if units and min(units) < FEWEST_UNITS:
        notices.append(
            f"{min(units)} seeds are too few: {FEWEST_UNITS - min(units)} more are needed before a study that differs, "
            "as on another machine, can be significantly worse"
        )
    return notices


def _differing(a: MethodScores, b: MethodScores) -> tuple[int, int]:
    """How many scores of seeds and environments differ in any bit, and of how many. A metric that the baseline does not
    have is no change; one that only the baseline has is."""
    assert a.table is not None
    assert b.table is not None
    left, right = (table.set_index(KEYS).sort_index() for table in (a.table, b.table))
    if not left.index.equals(right.index) or not set(left.columns) <= set(right.columns):
        return max(left.size, right.size), max(left.size, right.size)
    return int((left != right[left.columns]).to_numpy().sum()), left.size


def _change(row: Compared) -> str:
    assert row.a is not None
    assert row.b is not None
    return f"mean error {row.a:.4g} → {row.b:.4g} ({_relative(row):+.1%})"


def _relative(row: Compared) -> float:
    assert row.a is not None
    assert row.b is not None
    if row.a == row.b:
        return 0.0
    return (row.b - row.a) / abs(row.a) if row.a else math.copysign(math.inf, row.b)


def _how_sure(row: Compared) -> str:
    interval = f"95 % interval {interval_text(row.interval, '+.3g')}, " if row.interval else ""
    return f"Difference {row.difference:+.3g}, {interval}p = {row.p:.2g} over {row.units} seeds."


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if line.endswith(".") else f"{line}."
