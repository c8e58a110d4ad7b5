"""A night's judgement as a page that needs nothing else: findings first, then all that was compared."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from oodbench.nightly.findings import SLOWER, Judgement
from oodbench.report.page_data import NOT_SAID
from oodbench.report.template import render_template

FILE = "index.html"


@dataclass(frozen=True)
class ReportRow:
    label: str
    texts: list[str]
    marked: bool = False


@dataclass(frozen=True)
class ReportTable:
    titles: list[str]
    rows: list[ReportRow]
    legend: str = ""


def write_report(folder: Path, title: str, judgement: Judgement) -> Path:
    """index.html, and for programs the same as findings.json."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text(render_report(title, judgement), encoding="utf-8", newline="\n")
    text = json.dumps(judgement.as_dict(), indent=2) + "\n"
    (folder / "findings.json").write_text(text, encoding="utf-8", newline="\n")
    return path


def render_report(title: str, judgement: Judgement) -> str:
    count = len(judgement.findings)
    return render_template(
        "oodbench.nightly",
        "page.html.j2",
        headline=f"{count} finding{'s' * (count != 1)}" if count else "Nothing to report",
        title=title,
        before=judgement.before,
        now=judgement.now,
        findings=judgement.findings,
        notices=judgement.notices,
        results=_results(judgement),
        speed=_speed(judgement),
        provenance=_provenance(judgement),
    )


def _results(judgement: Judgement) -> ReportTable:
    found, found_about = judgement.comparison, {finding.about for finding in judgement.findings}
    rows = [
        ReportRow(
            f"{row.method} on {row.dataset_id}",
            [
                _number(row.a),
                _number(row.b),
                _number(row.difference, "+"),
                f"{row.interval[0]:+.3g} to {row.interval[1]:+.3g}" if row.interval else NOT_SAID,
                _number(row.p),
                str(row.units or NOT_SAID),
                f"{row.verdict}: {row.reason}" if row.reason else row.verdict,
            ],
            f"{row.method} on {row.dataset_id}" in found_about,
        )
        for row in found.rows
    ]
    titles = ["study", "baseline", "tonight", "difference", "95 % interval", "p", found.over, "verdict"]
    legend = (
        "Mean error over the test environments. A: the baseline, B: tonight. p: Wilcoxon's signed ranks over "
        f"{found.over}, adjusted by Holm over all that differ. Identical: but for rounding; on the machine of the "
        "baseline every bit is compared besides."
    )
    return ReportTable(titles, rows, legend)


def _speed(judgement: Judgement) -> ReportTable:
    rows = [
        ReportRow(one.method, [_number(one.before), _number(one.now), _number(one.times)], one.slower)
        for one in judgement.speed
    ]
    legend = (
        "CPU time of training a small pack that never changes, in units of a fixed work in torch that ran just before "
        f"and after it. Over {SLOWER} times the baseline is a finding."
    )
    return ReportTable(["method", "baseline", "tonight", "times"], rows, legend)


def _provenance(judgement: Judgement) -> ReportTable:
    sides = (judgement.before, judgement.now)
    facts: dict[str, list[str]] = {
        "date": [night.date for night in sides],
        "git commit": [night.git_commit[:12] or NOT_SAID for night in sides],
    }
    for name in ("system", "cpu", "instructions", "python"):
        facts[name] = [str(asdict(night.machine)[name]) for night in sides]
    for name in judgement.now.machine.packages:
        facts[name] = [night.machine.packages.get(name, NOT_SAID) for night in sides]
    rows = [
        ReportRow(name, texts, texts[0] != texts[1] and name not in ("date", "git commit"))
        for name, texts in facts.items()
    ]
    return ReportTable(["", "baseline", "tonight"], rows)


def _number(value: float | None, sign: str = "") -> str:
    return NOT_SAID if value is None else f"{value:{sign}.4g}"
