"""`oodbench.leaderboard` and `oodbench.write_page`: what the record has, compiled and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodbench.board.leaderboard import Leaderboard, compile_leaderboard
from oodbench.board.statistics import Over
from oodbench.errors import UserError
from oodbench.study.directory import DIRECTORY
from oodbench.study.plan import dataset_id_of

if TYPE_CHECKING:
    from oodbench.study.record import ConcludedStudy


def leaderboard(
    dataset: str,
    *,
    settings: Mapping[str, Any] | None = None,
    stability: bool = False,
    over: Over = "seeds",
    trials: int | None = None,
    seeds: int | None = None,
    mixed: bool = False,
    tracking_uri: str | None = None,
    directory: str | Path = DIRECTORY,
) -> Leaderboard:
    """The leaderboard of a dataset setting, from everything the record has on it: of each method the newest study.

    Args:
        dataset: Its name.
        settings: Of the dataset.
        stability: Add how stable the chosen models are among sub-populations.
        over: What tiers and intervals are about: other training draws (`"seeds"`) or other `"environments"`.
        trials: Only studies with so many trials.
        seeds: Only studies with so many seeds.
        mixed: Show studies that differ in budget or data together, marked; otherwise they are refused.
        tracking_uri: An MLflow server, instead of the record in `directory`.
        directory: Where the record is.

    Examples:
        >>> oodbench.leaderboard("selection_bias", settings={"r1": 1.9}, stability=True).frame()
    """
    dataset_id, records = recorded_studies(dataset, settings or {}, tracking_uri, Path(directory), trials, seeds)
    return compile_leaderboard(dataset_id, records, stability=stability, over=over, mixed=mixed)


def recorded_studies(
    dataset: str,
    settings: Mapping[str, Any],
    tracking_uri: str | None,
    directory: Path,
    trials: int | None = None,
    seeds: int | None = None,
) -> tuple[str, list[ConcludedStudy]]:
    """A dataset setting and the studies on it, of each label the newest; there is at least one."""
    from oodbench.record.tracking import Record

    dataset_id = dataset_id_of(dataset, settings)
    record = Record(tracking_uri, directory)
    records = [] if record.is_empty else record.studies(dataset_id, trials, seeds)
    if not records and (trials or seeds) and not record.is_empty and record.studies(dataset_id):
        raise UserError(
            f"no study on {dataset_id!r} in {record.address} has this budget.\n"
            "Leave out --trials and --seeds to see which there are."
        )
    if not records:
        known = "" if record.is_empty else ", ".join(record.dataset_ids())
        raise UserError(
            f"there are no studies on {dataset_id!r} in {record.address}.\n"
            + (
                f"There are some on: {known}."
                if known
                else f"Run `oodbench run --method erm --dataset {dataset}` first."
            )
        )
    return dataset_id, records


def write_page(boards: Leaderboard | Sequence[Leaderboard], folder: str | Path) -> Path:
    """One page, index.html, with the leaderboards and all that the record has on them; it needs no network, no server.

    Examples:
        >>> oodbench.write_page(oodbench.leaderboard("selection_bias"), "page")
    """
    from oodbench.report.page import Chapter
    from oodbench.report.page import write_page as write

    boards = [boards] if isinstance(boards, Leaderboard) else list(boards)
    title = boards[0].dataset_id if len(boards) == 1 else f"{len(boards)} dataset settings"
    return write(folder, title, [Chapter("", boards)])
