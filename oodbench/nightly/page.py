"""The findings of a night as a self-contained page: findings first, then everything that was compared."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from oodbench.nightly.findings import SLOWER, Judgement
from oodbench.report.template import render_template
from oodbench.report.text import ABSENT, count_text, interval_text, number_text

FILE = "index.html"
DIGITS = ".4g"


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
        headline=count_text(count, "finding") if count else "Nothing to report",
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
    comparison, marked = judgement.comparison, {finding.about for finding in judgement.findings}
    rows = [
        ReportRow(
            f"{row.method} on {row.dataset_id}",
            [
                number_text(row.a, DIGITS),
                number_text(row.b, DIGITS),
                number_text(row.difference, f"+{DIGITS}"),
                interval_text(row.interval, "+.3g"),
                number_text(row.p, DIGITS),
                str(row.units or ABSENT),
                f"{row.verdict}: {row.reason}" if row.reason else row.verdict,
            ],
            f"{row.method} on {row.dataset_id}" in marked,
        )
        for row in comparison.rows
    ]
    titles = ["study", "baseline", "tonight", "difference", "95 % interval", "p", comparison.over, "verdict"]
    legend = (
        "Mean error over the test environments. A: the baseline, B: tonight. p: moderated paired t-test over "
        f"{comparison.over}, Holm correction over all that differ. Identical: up to rounding; on the machine of the "
        "baseline every bit is compared as well."
    )
    return ReportTable(titles, rows, legend)


def _speed(judgement: Judgement) -> ReportTable:
    rows = [
        ReportRow(
            speed.method,
            [number_text(ratio, DIGITS) for ratio in (speed.before, speed.now, speed.times)],
            speed.slower,
        )
        for speed in judgement.speed
    ]
    legend = (
        "CPU time of training a small fixed pack, relative to a fixed amount of work in torch that ran just before and "
        f"after it. More than {SLOWER} times the baseline is a finding."
    )
    return ReportTable(["method", "baseline", "tonight", "times"], rows, legend)


def _provenance(judgement: Judgement) -> ReportTable:
    sides = (judgement.before, judgement.now)
    facts: dict[str, list[str]] = {
        "date": [night.date for night in sides],
        "git commit": [night.git_commit[:12] or ABSENT for night in sides],
    }
    for name in ("system", "cpu", "instructions", "python"):
        facts[name] = [str(asdict(night.machine)[name]) for night in sides]
    for name in judgement.now.machine.packages:
        facts[name] = [night.machine.packages.get(name, ABSENT) for night in sides]
    rows = [
        ReportRow(name, texts, texts[0] != texts[1] and name not in ("date", "git commit"))
        for name, texts in facts.items()
    ]
    return ReportTable(["", "baseline", "tonight"], rows)
