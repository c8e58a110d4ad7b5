"""What a page shows of a leaderboard besides its figures: plain texts, table by table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oodbench.board.leaderboard import with_picks
from oodbench.report.columns import AGAINST, has_interval
from oodbench.report.drawing import Look, looks_of
from oodbench.report.heat import HeatMap, heat_map
from oodbench.report.selectors import about_selectors, selector_texts
from oodbench.report.tables import legend, remarks, texts_of, titles_of
from oodbench.report.text import ABSENT, Plain, trials_text

if TYPE_CHECKING:
    from oodbench.board.leaderboard import Leaderboard
    from oodbench.settings.space import Value
    from oodbench.study.record import ConcludedStudy, StudyRecord

WORDS = ("method", "told")  # columns that are no numbers; against a method there are no tiers, but words


@dataclass(frozen=True)
class Bar:
    """An interval and the value in it, in hundredths of the width of all intervals of a board."""

    low: float
    value: float
    high: float


@dataclass(frozen=True)
class Line:
    """A row of the leaderboard."""

    label: str
    look: Look | None  # of methods that are in the figures
    tier: int | None
    texts: list[str]  # below the titles
    bar: Bar | None
    failure: str


@dataclass(frozen=True)
class Sheet:
    """All tables of a leaderboard."""

    dataset_id: str
    notices: tuple[str, ...]
    titles: list[str]
    words: tuple[str, ...]
    lines: list[Line]
    legend: str
    remarks: list[str]
    interval_column: int | None
    heat: HeatMap | None
    selectors: Plain
    selectors_about: str
    chosen: Plain
    ledger: Plain
    provenance: Plain
    versions: list[str]
    commands: list[tuple[str, str]]


def sheet_of(board: Leaderboard, looks: Mapping[str, Look]) -> Sheet:
    studies = studies_shown(board)
    records = [study.record for study in studies]
    titles = titles_of(board)
    bars = _bars(board)
    lines = [
        Line(
            row.label,
            looks.get(row.label),
            row.cells[board.metrics[0]].tier,
            texts_of(board, row, "★ {}"),
            bars.get(row.label),
            row.failure,
        )
        for row in board.lines
    ]
    return Sheet(
        board.dataset_id,
        board.notices,
        titles,
        (*WORDS, *(title for title in titles if title.startswith(AGAINST))),
        lines,
        legend(board),
        remarks(board),
        titles.index("95 % interval") if has_interval(board) else None,
        heat_map(board, studies),
        selector_texts(with_picks(board)),
        about_selectors(board),
        _chosen(records),
        _ledger(records),
        _provenance(studies),
        _versions(records),
        [(record.label, record.provenance.command) for record in records],
    )


def studies_shown(board: Leaderboard) -> list[ConcludedStudy]:
    """A study per row that has one, in the order of the rows."""
    by_label = {study.label: study for study in board.studies if not study.record.repeat_of}
    return [by_label[row.label] for row in board.rows if row.label in by_label]


def looks_on(board: Leaderboard) -> dict[str, Look]:
    """As in the figures of this dataset setting."""
    return looks_of(sorted(study.label for study in studies_shown(board) if study.results is not None))


def _bars(board: Leaderboard) -> dict[str, Bar]:
    cells = {row.label: row.cells[board.metrics[0]] for row in board.lines}
    intervals = {
        label: (*cell.intervals[board.over], cell.value)
        for label, cell in cells.items()
        if cell.value is not None and board.over in cell.intervals
    }
    if not intervals:
        return {}
    start, end = min(low for low, _, _ in intervals.values()), max(high for _, high, _ in intervals.values())
    width = (end - start) or 1.0
    return {
        label: Bar(*(round(100 * (place - start) / width, 2) for place in (low, value, high)))
        for label, (low, high, value) in intervals.items()
    }


def _chosen(records: Sequence[StudyRecord]) -> Plain:
    names = list(dict.fromkeys(name for record in records for name in record.chosen))
    rows = [
        (record.label, [_value(record.chosen[name]) if name in record.chosen else "" for name in names])
        for record in records
    ]
    return Plain(["method", *names], rows if names else [])


def _ledger(records: Sequence[StudyRecord]) -> Plain:
    titles = ["method", "trials", "seeds", "trainings", "failed", "gradient steps", "row visits", "seconds"]
    titles += ["device", "chosen by", "information"]
    rows = []
    for record in records:
        spent = record.ledger
        rows.append(
            (
                record.label,
                [
                    trials_text(spent.trials, spent),
                    str(record.budget.seeds),
                    f"{spent.trainings:,}",
                    str(spent.failed_trainings),
                    f"{spent.gradient_steps:,}",
                    f"{spent.row_visits:,}",
                    f"{spent.seconds:,.1f}" if spent.seconds >= 10 else f"{spent.seconds:.3f}",
                    spent.device,
                    record.selector,
                    record.told or "nothing",
                ],
            )
        )
    return Plain(titles, rows)


def _provenance(studies: Sequence[ConcludedStudy]) -> Plain:
    titles = ["method", "run", "concluded", "git commit", "training and validation data", "test data"]
    rows = []
    for study in studies:
        record, made = study.record, study.record.provenance
        texts = (study.run_id, made.day, made.git_commit[:12], record.data.fingerprint, record.test_fingerprint)
        rows.append((record.label, [text or ABSENT for text in texts]))
    return Plain(titles, rows)


def _versions(records: Iterable[StudyRecord]) -> list[str]:
    """Each set of versions once."""
    return sorted(
        {
            ", ".join([*(f"{name} {version}" for name, version in made.versions.items()), f"Python {made.python}"])
            for made in (record.provenance for record in records)
        }
    )


def _value(value: Value) -> str:
    """A hyper-parameter, with four digits if it has many more."""
    text = str(value)
    return f"{value:.4g}" if isinstance(value, float) and len(text) > 8 else text
