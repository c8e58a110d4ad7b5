"""What was tried and what was chosen, as CSV files beside a board. The same record gives the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oodbench.texts import as_csv

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.board.leaderboard import Leaderboard
    from oodbench.study.record import ConcludedStudy

CHOSEN, SWEEP = "_chosen.csv", "_sweep.csv"
COLUMNS = (
    "dataset_id", "method", "search", "configuration", "chosen", "score", "validation_mean_error",
    "validation_worst_error", "seeds", "failed_seeds",
)  # fmt: skip
STOPPED = "stopped_at"  # after how many steps, by a search by halving
HYPER_PARAMETER = "hp."


def sweep_files(name: str, boards: Sequence[Leaderboard]) -> dict[str, str]:
    """Every configuration of every study of the boards, and the chosen ones: the contents of two files, by name."""
    sweep = sweep_frame(boards)
    chosen = sweep[sweep["chosen"]].drop(columns="chosen")
    return {name + CHOSEN: as_csv(chosen), name + SWEEP: as_csv(sweep)}


def sweep_frame(boards: Sequence[Leaderboard]) -> pd.DataFrame:
    """A row per configuration: what the selector said of it, its errors on validation data, and `hp.NAME` columns.

    Studies are in alphabetical order of their labels, and those of one label by their searches; configurations are in
    the order in which they were drawn, the defaults first.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for board in boards:
        studies = sorted(board.studies, key=lambda study: (study.label, study.record.budget.repeat))
        for study in studies:
            rows += [{"dataset_id": board.dataset_id} | row for row in _configurations(study)]
    names = dict.fromkeys(name for row in rows for name in row if name.startswith(HYPER_PARAMETER))
    halved = [STOPPED] if any(STOPPED in row for row in rows) else []
    frame = pd.DataFrame(rows, columns=[*COLUMNS, *halved, *sorted(names)], dtype=object)
    return frame.astype({"chosen": bool})


def _configurations(study: ConcludedStudy) -> list[dict[str, Any]]:
    record = study.record
    errors = validation_errors(study)
    failed = [failure.configuration for failure in record.failures]
    stopped = record.ledger.stopped_at
    rows = []
    for index, hparams in enumerate(record.configurations):
        row: dict[str, Any] = {"method": record.label, "search": record.budget.repeat + 1, "configuration": index}
        row |= {"chosen": bool(record.choice and index in record.choice.used)}
        row |= {"score": record.choice.scores.get(index) if record.choice else None}
        row |= errors.get(index, {})
        row |= {"seeds": record.budget.seeds, "failed_seeds": failed.count(index)}
        if index in stopped:
            row[STOPPED] = stopped[index]
        rows.append(row | {f"{HYPER_PARAMETER}{name}": value for name, value in hparams.items()})
    return rows


def validation_errors(study: ConcludedStudy) -> dict[int, Mapping[str, float]]:
    """By configuration, means over seeds of the mean and the largest error over validation environments."""
    if study.results is None:
        return {}
    scores = study.results[study.results["part"] == "validation"]
    by_seed = scores.groupby(["configuration", "seed"])["error"].agg(["mean", "max"])
    means = by_seed.groupby("configuration").mean()
    return {
        int(str(index)): {"validation_mean_error": float(row["mean"]), "validation_worst_error": float(row["max"])}
        for index, row in means.iterrows()
    }
