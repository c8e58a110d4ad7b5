"""Scores per seed and test environment: taken from boards, written to CSV files, and read back."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from oodbench.engine.data import TASKS, Task
from oodbench.errors import UserError, one_line
from oodbench.plugin.reading import read_bounded
from oodbench.texts import as_csv, from_csv_text

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.board.leaderboard import Leaderboard

ENDING = "_cells.csv"
MEASURED = ("error", "accuracy", "f1")
SCORES_BYTES = 256 << 20  # of a file: a row has about 60
TEXTS = ("dataset_id", "method", "task", "environment")
NEEDED = ("dataset_id", "method", "task", "seed", "environment", "error")


@dataclass(frozen=True, eq=False)
class MethodScores:
    """What a method came to on a dataset setting; no table where it has no result."""

    dataset_id: str
    method: str
    task: Task
    table: pd.DataFrame | None  # seed, environment, error; accuracy and f1 for classes; metrics that were measured


def scores_of(boards: Iterable[Leaderboard]) -> list[MethodScores]:
    return [scores for board in boards for scores in _from_board(board.as_dict())]


def write_cells(scores: Sequence[MethodScores]) -> str:
    """A CSV file with a row per method, seed and environment, which `read_scores` reads."""
    import pandas as pd

    frames = [
        method.table.assign(dataset_id=method.dataset_id, method=method.method, task=method.task)
        for method in scores
        if method.table is not None
    ]
    if not frames:
        return ",".join(NEEDED) + "\n"
    frame = pd.concat(frames, ignore_index=True)
    of_classes = [name for name in MEASURED[1:] if name in frame]
    metrics = [name for name in frame if name not in (*NEEDED, *MEASURED)]
    return as_csv(frame[[*NEEDED, *of_classes, *metrics]])


def read_cells(files: Iterable[Path]) -> list[MethodScores]:
    """The scores that `write_cells` wrote, perhaps none."""
    return [scores for file in files for scores in parse_scores(str(file), read_bounded(file, SCORES_BYTES))]


def parse_scores(file: str, content: bytes) -> list[MethodScores]:
    try:
        if file.endswith(".json"):
            return [scores for board in _boards(json.loads(content)) for scores in _from_board(board)]
        return _from_cells(content)
    except (ValueError, KeyError, TypeError, OverflowError, AttributeError, RecursionError) as error:
        raise UserError(
            f"{file} is not a file of scores that oodbench wrote: {one_line(error)}.\n"
            f"`oodbench leaderboard --format json` and --cells write such files."
        ) from None


def _boards(document: Any) -> list[dict[str, Any]]:
    """Those of a leaderboard, of a run, or of a suite; curves have none."""
    if isinstance(document, list):
        return [board for part in document for board in _boards(part)]
    if "rows" in document:
        return [document]
    return [board for part in document.get("boards", ()) for board in _boards(part.get("leaderboards", []))]


def _from_board(board: Mapping[str, Any]) -> list[MethodScores]:
    import pandas as pd

    if not all(isinstance(name, str) for name in (board["dataset_id"], *(row["method"] for row in board["rows"]))):
        raise ValueError("a dataset or a method has no name")
    task = _task(board["task"])
    return [
        MethodScores(
            board["dataset_id"],
            row["method"],
            task,
            _checked(pd.DataFrame([dict(score) for score in row["results"]]), task) if row["results"] else None,
        )
        for row in board["rows"]
    ]


def _task(name: object) -> Task:
    if name not in TASKS:
        raise ValueError(f"there is no task {name!r}")
    return cast(Task, name)


def _checked(table: pd.DataFrame, task: Task) -> pd.DataFrame:
    """As a comparison needs it: what was not measured is NaN. Otherwise a ValueError, KeyError or TypeError."""
    if table["seed"].dtype.kind != "i" or not all(isinstance(name, str) for name in table["environment"]):
        raise ValueError("a seed is no whole number, or an environment no text")
    measured = MEASURED if task == "classification" else MEASURED[:1]
    lacking = {name: float("nan") for name in measured if name not in table and name != "error"}
    metrics = [name for name in table if name not in ("seed", "environment", *MEASURED)]
    return table.assign(**lacking).astype(dict.fromkeys([*measured, *metrics], float))


def _from_cells(content: bytes) -> list[MethodScores]:
    import pandas as pd

    frame = pd.read_csv(io.BytesIO(content), dtype=str)
    lacking = [name for name in NEEDED if name not in frame]
    if lacking:
        raise ValueError(f"no column {lacking[0]!r}")
    # from texts, to the last bit: pandas' own parser of numbers is quicker and not exact in all versions
    frame = frame.astype({"seed": int} | {str(name): float for name in frame if name not in (*TEXTS, "seed")})
    frame = frame.assign(**{name: frame[name].map(from_csv_text, na_action="ignore") for name in TEXTS})
    return [
        MethodScores(
            str(dataset_id),
            str(method),
            _task(task),
            _checked(
                table.drop(columns=["dataset_id", "method", "task"]).dropna(axis=1, how="all").reset_index(drop=True),
                _task(task),
            ),
        )
        for (dataset_id, method, task), table in frame.groupby(["dataset_id", "method", "task"], sort=False)
    ]
