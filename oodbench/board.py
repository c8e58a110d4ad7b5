"""Leaderboards: a pure function of the concluded studies on one dataset setting."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from oodbench.ledger import Ledger, find_unequal, refuse_unequal, terms_of
from oodbench.metrics import HIGHER_IS_BETTER, STABILITY, SUMMARY, summarize, summarize_stability
from oodbench.statistics import differ

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.tracking import StudyRecord

Mark = Literal["best", "tied", ""]


@dataclass(frozen=True)
class Published:
    """What others found, and their ±."""

    value: float
    spread: float | None


@dataclass(frozen=True)
class Cell:
    """A metric of a method: mean and spread (sample std) over seeds, and whether it is the best, or tied for it."""

    value: float | None
    spread: float | None
    mark: Mark = ""
    published: Published | None = None

    @property
    def within(self) -> bool | None:
        """Whether the value is within the published ±; None where there is nothing to compare."""
        if self.value is None or self.published is None or self.published.spread is None:
            return None
        return abs(self.value - self.published.value) <= self.published.spread

    def as_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = {"value": self.value, "spread": self.spread, "mark": self.mark}
        if self.published is not None:
            values["published"] = {
                "value": self.published.value,
                "spread": self.published.spread,
                "within": self.within,
            }
        return values


@dataclass(frozen=True)
class Row:
    label: str
    cells: dict[str, Cell]
    trials: int
    seeds: int
    failed_trainings: int
    information: str
    run_id: str
    failure: str = ""  # why there are no values
    ledger: Ledger = field(default_factory=Ledger)
    unequal: str = ""  # in what its terms differ from those of the others: it is marked, and neither best nor tied


@dataclass(frozen=True)
class Leaderboard:
    setting: str
    metrics: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)
    notices: tuple[str, ...] = ()  # what a reader must know of the data

    def has_published(self, metric: str) -> bool:
        return any(row.cells[metric].published is not None for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "setting": self.setting,
            "notices": list(self.notices),
            "rows": [
                {
                    "method": row.label,
                    "metrics": {name: cell.as_dict() for name, cell in row.cells.items()},
                    "trials": row.trials,
                    "seeds": row.seeds,
                    "failed_trainings": row.failed_trainings,
                    "information": row.information,
                    "failure": row.failure,
                    "unequal": row.unequal,
                    "ledger": asdict(row.ledger),
                    "run_id": row.run_id,
                }
                for row in self.rows
            ],
        }

    def frame(self, ledger: bool = False) -> pd.DataFrame:
        """One row per method, with columns `metric` and `metric_spread`; published figures beside, if there are any."""
        import pandas as pd

        return pd.DataFrame(
            [
                {"method": row.label}
                | {
                    key: value
                    for name, cell in row.cells.items()
                    for key, value in _columns(name, cell, self.has_published(name)).items()
                }
                | {
                    "trials": row.trials,
                    "seeds": row.seeds,
                    "failed_trainings": row.failed_trainings,
                    "information": row.information,
                    "failure": row.failure,
                    "unequal": row.unequal,
                }
                | (asdict(row.ledger) if ledger else {})
                for row in self.rows
            ]
        )


def _columns(name: str, cell: Cell, published: bool) -> dict[str, Any]:
    columns: dict[str, Any] = {name: cell.value, f"{name}_spread": cell.spread}
    if published:
        other = cell.published
        columns[f"{name}_published"] = other.value if other else None
        columns[f"{name}_published_spread"] = other.spread if other else None
        columns[f"{name}_within_published"] = cell.within
    return columns


def compile_leaderboard(
    setting: str,
    records: Sequence[StudyRecord],
    missing: Sequence[str] = (),
    metrics: Sequence[str] = (),
    stability: bool = False,
    mixed: bool = False,
) -> Leaderboard:
    """The board of these studies, one a label. `missing` labels are shown without values.

    Studies that differ in budget or data are refused, or marked if they are wanted `mixed`. The metrics are the usual
    ones of the task unless others are named; the first of them ranks.
    """
    by_label = {record.label: record for record in records}
    tasks = {record.task for record in records}
    metrics = tuple(metrics) or (SUMMARY[tasks.pop()] if tasks else SUMMARY["regression"])
    metrics += STABILITY if stability else ()
    terms = {label: terms_of(record) for label, record in by_label.items() if record.results is not None}
    if not mixed:
        refuse_unequal(setting, terms)
    unequal = find_unequal(terms)
    per_seed = {
        label: summarize(record.results, record.task).join(summarize_stability(record.results))
        for label, record in by_label.items()
        if record.results is not None
    }
    rows = [
        Row(
            label=label,
            cells={name: _cell(label, name, per_seed, unequal) for name in metrics},
            trials=record.trials,
            seeds=record.seeds,
            failed_trainings=record.failed_trainings,
            information=record.information,
            run_id=record.run_id,
            failure="" if record.results is not None else record.reason or record.status.lower(),
            ledger=record.ledger,
            unequal=unequal.get(label, ""),
        )
        for label, record in by_label.items()
    ]
    rows += [
        Row(label, {name: Cell(None, None) for name in metrics}, 0, 0, 0, "", "", "not run")
        for label in missing
        if label not in by_label
    ]
    sign = -1 if metrics[0] in HIGHER_IS_BETTER else 1
    rows.sort(
        key=lambda row: (row.cells[metrics[0]].value is None, sign * (row.cells[metrics[0]].value or 0), row.label)
    )
    notices = tuple(dict.fromkeys(record.notice for record in records if record.notice))
    return Leaderboard(setting, metrics, rows, notices)


def _cell(label: str, metric: str, per_seed: dict[str, pd.DataFrame], unequal: Container[str]) -> Cell:
    if label not in per_seed or per_seed[label][metric].isna().any():
        return Cell(None, None)
    values = per_seed[label][metric]
    spread = float(values.std(ddof=1)) if len(values) > 1 else None
    comparable = {name: frame for name, frame in per_seed.items() if name not in unequal}
    return Cell(float(values.mean()), spread, _mark(label, metric, comparable) if label in comparable else "")


def _mark(label: str, metric: str, per_seed: dict[str, pd.DataFrame]) -> Mark:
    """best: ahead of every other by more than the noise; tied: not distinguishable from the first."""
    sign = -1 if metric in HIGHER_IS_BETTER else 1
    ranked = sorted(
        (name for name in per_seed if not per_seed[name][metric].isna().any()),
        key=lambda name: sign * per_seed[name][metric].mean(),
    )
    if len(ranked) < 2:
        return ""
    first = ranked[0]
    tied = [name for name in ranked[1:] if not _differ(per_seed[first][metric], per_seed[name][metric])]
    if label == first:
        return "tied" if tied else "best"
    return "tied" if label in tied else ""


def _differ(a: pd.Series[float], b: pd.Series[float]) -> bool:
    common = a.index.intersection(b.index)
    return differ(a.loc[common].to_numpy(), b.loc[common].to_numpy())
