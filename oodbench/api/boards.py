"""`oodbench.leaderboard` and `oodbench.write_page`: what the record has, compiled and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodbench.board.leaderboard import Leaderboard, compile_leaderboard
from oodbench.board.metrics import WEIGHTS, Weights, board_metric
from oodbench.board.statistics import OVER, Over
from oodbench.errors import UserError
from oodbench.settings.option import like, one_of, option, takes_options
from oodbench.study.plan import dataset_id_of
from oodbench.study.spec import Budget, Place, Selecting, Training
from oodbench.suite.suite import Overrides

if TYPE_CHECKING:
    from oodbench.study.record import ConcludedStudy


def known_metrics(names: Sequence[str], flag: str) -> list[str]:
    for name in names:
        board_metric(name)
    return list(names)


@dataclass(frozen=True, kw_only=True)
class BoardOptions(Place):
    """All options of `oodbench.leaderboard`.

    Examples:
        >>> oodbench.leaderboard("selection_bias", settings={"r1": 1.9}, stability=True)
        >>> oodbench.leaderboard("selection_bias", metrics=["mean_mae", "mean_r2"], rank_by="worst_rmse")
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights == "rows" and self.over == "environments":
            raise UserError(
                "--weights rows does not go with --over environments: other environments would have other rows.\n"
                "Leave one of them out."
            )

    settings: Mapping[str, Any] = like(Training, "settings")
    trials: int | None = like(Budget, "trials")
    seeds: int | None = like(Budget, "seeds")
    selector: str | None = like(Selecting, "selector")
    stability: bool = option(False, "Add how stable the chosen models are among sub-populations.")
    over: Over = option(
        "seeds", "What claims are about: other training draws (seeds) or other environments.",
        check=one_of("unit for --over", OVER),
    )  # fmt: skip
    mixed: bool = like(Overrides, "mixed", False)
    metrics: Sequence[str] = option(
        (), "A metric to show instead of the usual: mean_auc, worst_log_loss, std_mae ...; may be given several times.",
        name="--metric", metavar="NAME", check=known_metrics,
    )  # fmt: skip
    rank_by: str = option(
        "", "The metric that ranks, shown first.", metavar="NAME",
        check=lambda value, flag: value and known_metrics([value], flag)[0],
    )  # fmt: skip
    weights: Weights = option(
        "equal", "How test environments count in means: equal, or by their rows.", check=one_of("weights", WEIGHTS)
    )
    price: bool = option(
        False,
        "Show what every selector would have chosen, and what it loses; for studies of run --open-all.",
    )
    against: str = option(
        "", "Compare each method with this one only: fewer claims than all pairs, so smaller differences are found.",
        metavar="METHOD",
    )  # fmt: skip


@takes_options(BoardOptions)
def leaderboard(dataset: str, options: BoardOptions) -> Leaderboard:
    """The leaderboard of a dataset, from everything the record has on it: of each method the newest study.

    Studies that differ in budget or data are refused, unless they are wanted `mixed`. With `against`, there are no
    tiers: the board says which methods are better or worse than that one. `metrics` are what is shown, and the first
    of them, or `rank_by`, is what tiers are about.

    Args:
        dataset: Its name.
        options: The fields of `oodbench.BoardOptions`, as keyword arguments. `trials`, `seeds` and `selector` choose
            the studies with that budget and choice.

    Examples:
        >>> oodbench.leaderboard("selection_bias", settings={"r1": 1.9}, stability=True).frame()
    """
    dataset_id, records = recorded_studies(dataset, options)
    return compile_leaderboard(
        dataset_id,
        records,
        stability=options.stability,
        over=options.over,
        mixed=options.mixed,
        against=options.against,
        metrics=options.metrics,
        rank_by=options.rank_by,
        weights=options.weights,
        price=options.price,
    )


def recorded_studies(dataset: str, options: BoardOptions) -> tuple[str, list[ConcludedStudy]]:
    """The id of a dataset and the studies on it, of each label the newest; there is at least one."""
    from oodbench.record.tracking import Record

    dataset_id = dataset_id_of(dataset, options.settings)
    record = Record(options.tracking_uri, options.folder)
    asked = (options.trials, options.seeds, options.selector)
    records = [] if record.is_empty else record.studies(dataset_id, *asked)
    if not records and any(asked) and not record.is_empty and record.studies(dataset_id):
        raise UserError(
            f"no study on {dataset_id!r} in {record.address} has this budget or selector.\n"
            "Leave out --trials, --seeds and --selector to see which there are."
        )
    if not records:
        recorded = "" if record.is_empty else ", ".join(record.dataset_ids())
        remedy = f"There are studies on: {recorded}." if recorded else ""
        remedy = remedy or f"Run `oodbench run --method erm --dataset {dataset}` first."
        raise UserError(f"there are no studies on {dataset_id!r} in {record.address}.\n{remedy}")
    return dataset_id, records


def write_page(boards: Leaderboard | Sequence[Leaderboard], folder: str | Path) -> Path:
    """One page, index.html, with the leaderboards and all that the record has on them; it needs no network, no server.

    Beside it are the files that it links: what was tried and what was chosen, as CSV.

    Examples:
        >>> oodbench.write_page(oodbench.leaderboard("selection_bias"), "page")
    """
    from oodbench.report.folder import write_board_page

    return write_board_page([boards] if isinstance(boards, Leaderboard) else list(boards), folder)[-1]
