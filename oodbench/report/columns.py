"""The columns of leaderboards as tables: which there are, and in what order. How their texts look, the formats say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from oodbench.board.leaderboard import Leaderboard

TITLES = {
    "mean_error": "mean error",
    "std_error": "std error",
    "max_error": "max error",
    "mean_accuracy": "test accuracy",
    "train_accuracy": "train accuracy",
    "causal_error": "error of causal coefficients",
    "noncausal_error": "error of other coefficients",
    "mean_f1": "mean F1",
    "worst_f1": "worst F1",
    "validation_stability": "validation DS",
    "test_stability": "test DS",
    "max_test_stability": "max test DS",
    "ods": "ODS",
    "max_ods": "max ODS",
}
SPELLED = {
    "f1": "F1",
    "auc": "AUC",
    "pr": "PR",
    "ece": "ECE",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "brier": "Brier",
}


OF_TARGET = ("error", "rmse", "mae")  # endings of metrics that have the unit of the target, or its square
SCALED = " (scaled)"


def title_of(metric: str, scaled: bool = False) -> str:
    """In words; with a word on its unit where the target is standardised."""
    title = TITLES.get(metric) or " ".join(SPELLED.get(word, word) for word in metric.split("_"))
    return title + SCALED if scaled and metric.endswith(OF_TARGET) else title


AGAINST = "against "  # and the method that the others are compared with

Content = Literal[
    "method", "tier", "value", "interval", "searches", "without_seed", "price", "published", "validation", "budget",
    "information", "failures",
]  # fmt: skip


@dataclass(frozen=True)
class Column:
    content: Content
    title: str
    metric: str = ""  # of which it is about


def columns_of(boards: Sequence[Leaderboard]) -> list[Column]:
    """What any of the boards has. The boards have the same metrics, and the first of them is shown in most detail."""
    first, scaled = boards[0].metrics[0], any(board.scaled for board in boards)
    shown = {
        name: any(board.shows(name) for board in boards)
        for name in ("tier", "side", "search_spread", "without_seed", "price")
    }
    shown["validation"] = any(row.validation.value is not None for board in boards for row in board.rows)
    columns = [Column("method", "method")]
    if shown["tier"] or shown["side"] or any(board.tiers.too_few for board in boards):
        columns.append(Column("tier", AGAINST + boards[0].against if boards[0].against else "tier", first))
    for metric in boards[0].metrics:
        columns.append(Column("value", title_of(metric, scaled), metric))
        if metric == first:
            columns += [Column("interval", "95 % interval", metric)] if any(map(has_interval, boards)) else []
            columns += [Column("searches", "over searches", metric)] if shown["search_spread"] else []
            columns += [Column("without_seed", "seed left out", metric)] if shown["without_seed"] else []
            columns += [Column("price", "price of selection", metric)] if shown["price"] else []
            columns += [Column("validation", title_of("validation_error", scaled))] if shown["validation"] else []
        if any(board.has_published(metric) for board in boards):
            columns.append(Column("published", "published", metric))
    return [
        *columns,
        Column("budget", "trials × seeds"),
        Column("information", "told"),
        Column("failures", "failed"),
    ]


def has_interval(board: Leaderboard) -> bool:
    return any(board.over in row.cells[board.metrics[0]].intervals for row in board.rows)
