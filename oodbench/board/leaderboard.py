"""Leaderboards: a pure function of the concluded studies on one dataset setting."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from oodbench.board.choice import ORACLE, Pick, picks_of, without_seeds
from oodbench.board.metrics import (
    STABILITY,
    SUMMARY,
    Weights,
    board_metric,
    check_metrics,
    higher_is_better,
    summarize,
    summarize_stability,
)
from oodbench.board.row import Cell, Row
from oodbench.board.standing import (
    Standing,
    compare_methods,
    find_collapsed,
    find_constant,
    intervals_of,
    label_of,
    not_comparable,
)
from oodbench.board.statistics import Over, Tiers
from oodbench.board.terms import find_unequal, refuse_unequal, terms_of
from oodbench.engine.data import Task
from oodbench.engine.scoring import SCORES
from oodbench.study.record import COLUMNS, CONSTANT, ConcludedStudy

if TYPE_CHECKING:
    import pandas as pd

NOT_MEASURED = "the study was made without this metric; run it again with --fresh"
NOT_LOOKED = "the study was run with --no-stability; run it again with --fresh"
NOT_RUN, UNREADABLE = "not run", "unreadable"  # why nothing is known of a row
MORE_THAN_VALIDATION = "Not comparable with a choice on validation scores alone: {told}."
NOTHING_COMPARED = Tiers()


@dataclass(frozen=True, repr=False)
class Leaderboard:
    """The methods on one dataset setting, and how they stand.

    Examples:
        >>> board = oodbench.leaderboard("selection_bias")
        >>> board.frame()[["method", "tier", "mean_error", "mean_error_low", "mean_error_high"]]
    """

    dataset_id: str
    metrics: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)
    notices: tuple[str, ...] = ()  # what a reader must know of the data
    task: Task = "regression"
    over: Over = "seeds"  # what tiers and the shown interval are about
    tiers: Tiers = NOTHING_COMPARED  # of the first metric
    against: str = ""  # the method that the others are compared with, instead of each with each
    studies: tuple[ConcludedStudy, ...] = field(default=(), repr=False, compare=False)  # that it is made of
    weights: Weights = "equal"  # of the test environments in means
    constant: Row | None = None  # the line of the constant, where no study has it: what any method must beat
    scaled: bool = False  # whether errors are those of a standardised target

    def __repr__(self) -> str:
        return f"<Leaderboard of {self.dataset_id}: {', '.join(row.label for row in self.rows)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        shown = ["method", "tier", "against", *self.metrics, "failure"]
        frame = self.frame().reindex(columns=shown).dropna(axis=1, how="all")
        notices = "".join(f"<p>{escape(notice)}</p>" for notice in self.notices)
        return f"<h4>{escape(self.dataset_id)}</h4>{notices}{frame.to_html(index=False, na_rep='', border=0)}"

    @property
    def lines(self) -> list[Row]:
        """What a table shows: the rows, and the constant among them, the best first."""
        return _best_first([*self.rows, *([self.constant] if self.constant else [])], self.metrics[0])

    def shows(self, what: str) -> bool:
        """Whether any cell of the first metric has it: a tier, a side, a price, a search_spread, without_seed."""
        return any(getattr(row.cells[self.metrics[0]], what) is not None for row in self.rows)

    def has_published(self, metric: str) -> bool:
        return any(row.cells[metric].published is not None for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "dataset_id": self.dataset_id,
            "task": self.task,
            "over": self.over,
            "environments_weighted": self.weights,
            "against": self.against or None,
            "too_few_to_tell": self.tiers.too_few,
            "errors_scaled": self.scaled,
            "notices": list(self.notices),
            "rows": [row.as_dict() for row in self.rows],
            "constant": self.constant.as_dict() if self.constant else None,
        }

    def frame(self, ledger: bool = False) -> pd.DataFrame:
        """One row per method, and the constant: the tier, and of each metric value, spread, interval and so on."""
        import pandas as pd

        frame = pd.DataFrame(
            [
                {"method": row.label, "tier": row.cells[self.metrics[0]].tier}
                | ({"against": row.cells[self.metrics[0]].side} if self.against else {})
                | {key: value for name, cell in row.cells.items() for key, value in self._columns(name, cell).items()}
                | {"validation_error": row.validation.value, "validation_error_spread": row.validation.spread}
                | row.terms()
                | (row.costs() if ledger else {})
                for row in self.lines
            ]
        )
        return frame.astype({"tier": "Int64"}) if self.rows else frame

    def _columns(self, name: str, cell: Cell) -> dict[str, Any]:
        low, high = cell.intervals.get(self.over, (None, None))
        columns: dict[str, Any] = {name: cell.value, f"{name}_spread": cell.spread}
        columns |= {f"{name}_low": low, f"{name}_high": high}
        if self.shows("search_spread"):
            columns[f"{name}_search_spread"] = cell.search_spread
        if self.shows("without_seed"):
            columns[f"{name}_seed_left_out"] = cell.without_seed
        if self.shows("price"):
            columns[f"{name}_price_of_selection"] = cell.price
        if self.has_published(name):
            published = cell.published
            columns[f"{name}_published"] = published.value if published else None
            columns[f"{name}_published_spread"] = published.spread if published else None
            columns[f"{name}_within_published"] = cell.within
        return columns


def compile_leaderboard(
    dataset_id: str,
    studies: Sequence[ConcludedStudy],
    missing: Sequence[str] = (),
    metrics: Sequence[str] = (),
    stability: bool = False,
    over: Over = "seeds",
    mixed: bool = False,
    against: str = "",
    unreadable: Mapping[str, str] | None = None,
    rank_by: str = "",
    weights: Weights = "equal",
    price: bool = False,
) -> Leaderboard:
    """The board of these studies, one a label. `missing` labels are shown without values; of those that were run but
    are `unreadable`, it says what is wrong.

    Studies that differ in budget or data are refused, or if they are wanted `mixed`, marked and not compared. The
    metrics are the usual ones of the task unless others are named; the first of them ranks, or the one to `rank_by`.
    Means over test environments give these equal `weights`, or weights by their rows. Repeats of a search tell how
    much chance matters, and what was opened after the choice how much that does: with `price`, what each selector would
    have chosen. An oracle is shown, but not compared with others, and neither is a reference. A board `against` a
    method, which may be a reference, has no tiers: it says which of the others are better or worse than that one.
    """
    by_label = {study.label: study for study in studies if not study.record.repeat_of}
    tasks = {study.record.task for study in studies}
    known = next(iter(tasks), None)
    task: Task = known or "regression"
    metrics = tuple(metrics) or SUMMARY[task]
    metrics = check_metrics([*([rank_by] if rank_by else []), *metrics, *(STABILITY if stability else ())], known)
    results = {label: study.results for label, study in by_label.items() if study.results is not None}
    terms = {label: terms_of(by_label[label].record) for label in results}
    if not mixed:
        refuse_unequal(dataset_id, terms)
    unequal = find_unequal(terms)
    measure = partial(_per_seed, task=task, metrics=metrics, weights=weights)
    per_seed = {label: measure(results[label]) for label in results}
    without = {label: without_seeds(by_label[label], measure) for label in results}
    picks = {label: picks_of(by_label[label], measure) for label in results} if price else {}
    references = {label for label in results if not by_label[label].record.ranked}
    compared = {label for label in results if not is_oracle(by_label[label]) and label not in unequal} - references
    untold = {label: results[label] for label in references if not by_label[label].record.information}
    constant = None if untold else find_constant(results.values())
    collapsed = find_collapsed(results, [*untold.values(), *([] if constant is None else [constant])])
    against = label_of(against, {label: study.record.method for label, study in by_label.items()})
    if against and against not in compared | references - unequal.keys():
        raise not_comparable(against, set(by_label), set(results), unequal)
    stands = {name: compare_methods(name, results, per_seed, over, compared, against, weights) for name in metrics}
    repeats = {
        label: [
            measure(repeat.results)
            for repeat in studies
            if repeat.record.repeat_of == study.record.study_id and repeat.results is not None
        ]
        for label, study in by_label.items()
    }
    rows = [
        Row(
            label=label,
            cells={
                name: _cell(
                    name,
                    per_seed.get(label),
                    stands[name][0].get(label, Standing()),
                    repeats[label],
                    without.get(label),
                    picks.get(label, {}).get(ORACLE),
                )
                for name in metrics
            },
            trials=study.record.ledger.trials,
            seeds=study.record.budget.seeds,
            failed_trainings=study.record.ledger.failed_trainings,
            information=study.record.told,
            run_id=study.run_id,
            failure="" if label in results else study.record.reason or study.record.status.lower(),
            ledger=study.record.ledger,
            budget=study.record.budget,
            unequal=unequal.get(label, ""),
            reference=not study.record.ranked,
            collapsed=label in collapsed,
            searches=1 + len(repeats[label]),
            results=scores_on_test(results.get(label)),
            missing=_missing(study, metrics) if label in results else {},
            picks=picks.get(label, {}),
            validation=_validation_error(results.get(label)),
        )
        for label, study in by_label.items()
    ]
    why = {label: f"{UNREADABLE}: {what}" for label, what in (unreadable or {}).items()}
    rows += [
        Row(label, {name: Cell(None, None) for name in metrics}, 0, 0, 0, "", "", why.get(label, NOT_RUN))
        for label in dict.fromkeys(missing)
        if label not in by_label
    ]
    told = dict.fromkeys(study.record.choice_told for study in studies if study.record.choice_told)
    notices = tuple(dict.fromkeys(study.record.notice for study in studies if study.record.notice))
    notices += tuple(MORE_THAN_VALIDATION.format(told=what) for what in told)
    return Leaderboard(
        dataset_id,
        metrics,
        _best_first(rows, metrics[0]),
        notices,
        task,
        over,
        stands[metrics[0]][1],
        against,
        tuple(studies),
        weights,
        None if constant is None else _constant_line(constant, task, metrics, weights),
        any(study.record.data.scaled for study in studies),
    )


def with_picks(board: Leaderboard) -> Leaderboard:
    """The board with what each selector would have chosen, as `price` has it, where a study opened all."""
    measure = partial(_per_seed, task=board.task, metrics=board.metrics, weights=board.weights)
    studies = {study.label: study for study in board.studies if not study.record.repeat_of}
    return replace(
        board,
        rows=[
            replace(row, picks=picks_of(studies[row.label], measure)) if row.label in studies and not row.picks else row
            for row in board.rows
        ],
    )


def _best_first(rows: Iterable[Row], metric: str) -> list[Row]:
    sign = -1 if higher_is_better(metric) else 1
    return sorted(
        rows, key=lambda row: (row.cells[metric].value is None, sign * (row.cells[metric].value or 0), row.label)
    )


def _constant_line(results: pd.DataFrame, task: Task, metrics: Sequence[str], weights: Weights) -> Row:
    per_seed = _per_seed(results, task, metrics, weights)
    cells = {
        name: _cell(name, per_seed, Standing(intervals=intervals_of(results, per_seed, name, weights)))
        for name in metrics
    }
    return Row(CONSTANT, cells, 0, len(per_seed), 0, "", "", reference=True, results=scores_on_test(results))


def is_oracle(study: ConcludedStudy) -> bool:
    return study.record.selector == ORACLE


def _per_seed(results: pd.DataFrame, task: Task, metrics: Sequence[str], weights: Weights) -> pd.DataFrame:
    return summarize(results, task, metrics, weights).join(summarize_stability(results))


def _missing(study: ConcludedStudy, metrics: Sequence[str]) -> dict[str, str]:
    """Why the cells of these metrics have no value, by metric of an environment."""
    record = study.record
    shown = {board_metric(name).column for name in metrics if board_metric(name).aggregate} - SCORES.keys()
    reasons = {name: record.missing.get(name) for name in shown & record.missing.keys()}
    unknown = shown - set(record.metrics) - record.missing.keys()
    missing = {name: reasons.get(name) or NOT_MEASURED for name in sorted(reasons.keys() | unknown)}
    return missing | ({"stability": NOT_LOOKED} if record.stability is None and set(metrics) & set(STABILITY) else {})


def _cell(
    metric: str,
    per_seed: pd.DataFrame | None,
    standing: Standing,
    repeats: Sequence[pd.DataFrame] = (),
    without: pd.DataFrame | None = None,
    oracle: Pick | None = None,
) -> Cell:
    if per_seed is None or per_seed[metric].isna().any():
        return Cell(None, None)
    values = per_seed[metric]
    means = [float(values.mean()), *(float(repeat[metric].mean()) for repeat in repeats)]
    sign = -1 if higher_is_better(metric) else 1
    return Cell(
        means[0],
        float(values.std(ddof=1)) if len(values) > 1 else None,
        mark="best" if standing.alone else "tied" if standing.may_be_best else "",
        tier=standing.tier,
        side=standing.side,
        missing=standing.missing,
        intervals=standing.intervals,
        worse_than=standing.worse_than,
        search_spread=statistics.stdev(means) if repeats else None,
        price=sign * (means[0] - oracle.values[metric]) if oracle and metric in oracle.values else None,
        without_seed=float(without[metric].mean()) if without is not None and without[metric].notna().all() else None,
    )


def _validation_error(results: pd.DataFrame | None) -> Cell:
    if results is None:
        return Cell(None, None)
    rows = results[results["chosen"] & (results["part"] == "validation")]
    per_seed = rows.groupby("seed")["error"].mean()
    if per_seed.empty:
        return Cell(None, None)
    return Cell(float(per_seed.mean()), float(per_seed.std(ddof=1)) if len(per_seed) > 1 else None)


def scores_on_test(results: pd.DataFrame | None) -> tuple[Mapping[str, Any], ...]:
    """Of the chosen configuration, by seed and environment."""
    if results is None:
        return ()
    test = results[results["chosen"] & (results["part"] == "test")]
    scores = [name for name in ("error", "accuracy", "f1") if name in test and test[name].notna().all()]
    metrics = [name for name in map(str, test) if name not in COLUMNS and test[name].notna().any()]
    columns = ["seed", "environment", *scores, *metrics]
    values = (test[name].astype(object).where(test[name].notna(), None).tolist() for name in columns)
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))
