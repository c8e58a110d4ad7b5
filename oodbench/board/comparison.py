"""Two sets of results compared: what became better, what became worse, and where the data are too few to tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from oodbench.board.cells import MethodScores
from oodbench.board.metrics import SUMMARY, board_metric, check_metrics, higher_is_better, summarize
from oodbench.board.moderated import FEWEST_UNITS, Numbers, differences, moderated_t
from oodbench.board.standing import units_of
from oodbench.board.statistics import LEVEL, Over, holm, mean_interval
from oodbench.errors import UnknownName, UserError

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal[
    "identical", "better", "worse", "no difference shown", "too few to tell", "failed in B", "failed in A",
    "not comparable", "only in A", "only in B",
]  # fmt: skip
WORSENED = ("worse", "failed in B")


@dataclass(frozen=True)
class Compared:
    """A method of A beside one of B on a dataset setting."""

    dataset_id: str
    method: str
    verdict: Verdict
    a: float | None = None
    b: float | None = None
    difference: float | None = None  # b - a
    interval: tuple[float, float] | None = None  # of the difference
    p: float | None = None  # adjusted by Holm over all that differ
    units: int = 0  # seeds or environments that both have
    reason: str = ""


@dataclass(frozen=True)
class Comparison:
    metric: str
    over: Over
    rows: list[Compared]

    @property
    def worsened(self) -> bool:
        return any(row.verdict in WORSENED for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        rows = [asdict(row) for row in self.rows]
        return {"metric": self.metric, "over": self.over, "worsened": self.worsened, "rows": rows}


@dataclass(frozen=True, eq=False)
class _Pair:
    dataset_id: str
    method: str
    a: pd.Series[float]
    b: pd.Series[float]

    @property
    def differences(self) -> Any:
        return differences(np.asarray(self.b, np.float64), np.asarray(self.a, np.float64))


def compare(
    a: Sequence[MethodScores], b: Sequence[MethodScores], metric: str = "mean_error", over: Over = "seeds"
) -> Comparison:
    """B compared with A, by setting and method; where each side has a single method, those two are compared."""
    one_each = len({scores.method for scores in a}) == 1 == len({scores.method for scores in b})
    comparison = compare_all(a, b, metric, over, by_name=not one_each)
    if all(row.a is None for row in comparison.rows) and not comparison.worsened:
        reasons = "; ".join(dict.fromkeys(row.reason for row in comparison.rows if row.reason))
        reasons = reasons or "they have no method and dataset setting in common"
        raise UserError(f"A and B cannot be compared: {reasons}.\nGive results on the same settings and seeds.")
    return comparison


def compare_all(
    a: Sequence[MethodScores],
    b: Sequence[MethodScores],
    metric: str = "mean_error",
    over: Over = "seeds",
    by_name: bool = True,
) -> Comparison:
    """As `compare`, but A and B may have nothing in common. If not `by_name`, methods of different names are paired."""
    rows: list[Compared] = []
    pairs: list[_Pair] = []
    of_a, of_b = ({(scores.dataset_id, scores.method if by_name else ""): scores for scores in side} for side in (a, b))
    for key in dict.fromkeys([*of_a, *of_b]):
        in_a, in_b = of_a.get(key), of_b.get(key)
        if in_a is None or in_b is None:
            present = in_a or in_b
            assert present is not None
            rows.append(Compared(present.dataset_id, present.method, "only in A" if in_a else "only in B"))
            continue
        name = in_a.method if in_a.method == in_b.method else f"{in_a.method} → {in_b.method}"
        if in_a.table is None or in_b.table is None:
            failed: Verdict = "failed in B" if in_a.table is not None else "failed in A"
            rows.append(Compared(in_a.dataset_id, name, failed))
            continue
        pair = _pair(in_a, in_b, name, metric, over)
        if isinstance(pair, str):
            rows.append(Compared(in_a.dataset_id, name, "not comparable", reason=pair))
        else:
            pairs.append(pair)
    return Comparison(metric, over, [*_judge(pairs, higher_is_better(metric)), *rows])


def _pair(a: MethodScores, b: MethodScores, name: str, metric: str, over: Over) -> _Pair | str:
    """The values both have, or why they cannot be paired."""
    assert a.table is not None
    assert b.table is not None
    if a.task != b.task:
        return f"{a.task} in A and {b.task} in B"
    check_metrics([metric], a.task)
    if not board_metric(metric).aggregate:  # not of values in test environments
        raise UnknownName(f"metric to compare {a.task} by", metric, SUMMARY[a.task])
    if set(a.table["environment"]) != set(b.table["environment"]):
        return "the test environments differ"
    seeds = sorted(set(a.table["seed"]) & set(b.table["seed"]))
    if not seeds:
        return "no seed in common"
    units = []
    for side in (a, b):
        assert side.table is not None
        results = side.table[side.table["seed"].isin(seeds)].assign(part="test", chosen=True, rows=1)
        units.append(units_of(results, summarize(results, side.task, [metric]), metric, over))
    if not len(units[0]) or units[0].isna().any() or units[1].isna().any():
        return f"{metric} has no value per {over.removesuffix('s')}"
    return _Pair(a.dataset_id, name, units[0], units[1].loc[units[0].index])


def _judge(pairs: Sequence[_Pair], higher_is_better: bool) -> list[Compared]:
    """The pairs that are not identical, and have units enough, are one family of claims."""
    tested = [pair for pair in pairs if pair.differences.any() and len(pair.a) >= FEWEST_UNITS]
    adjusted = dict(zip(map(id, tested), holm(_p_values(tested)).tolist(), strict=True))
    rows = []
    for pair in pairs:
        apart, p = pair.differences, adjusted.get(id(pair))
        verdict: Verdict = "no difference shown"
        if not apart.any():
            verdict = "identical"
        elif p is None:
            verdict = "too few to tell"
        elif p <= LEVEL:
            verdict = "better" if (apart.mean() > 0) == higher_is_better else "worse"
        rows.append(
            Compared(
                pair.dataset_id,
                pair.method,
                verdict,
                float(pair.a.mean()),
                float(pair.b.mean()),
                float(apart.mean()),
                mean_interval(apart),
                p,
                len(apart),
                f"{FEWEST_UNITS - len(apart)} more are needed" if verdict == "too few to tell" else "",
            )
        )
    return rows


def _p_values(pairs: Sequence[_Pair]) -> Numbers:
    """Of the pairs in their order. Those on one dataset setting moderate each other: their errors have one scale."""
    p = np.ones(len(pairs))
    for dataset_id in {pair.dataset_id for pair in pairs}:
        members = [index for index, pair in enumerate(pairs) if pair.dataset_id == dataset_id]
        gaps = np.full((len(members), max(len(pairs[index].a) for index in members)), np.nan)  # [pair, unit]
        for row, index in zip(gaps, members, strict=True):
            row[: len(pairs[index].a)] = pairs[index].differences
        p[members] = moderated_t(gaps, len(members))
    return p
