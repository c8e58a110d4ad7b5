"""Scores per seed and test environment, wherever they are: in files that oodbench wrote, at a git revision, or in the
record."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodbench.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.board import Leaderboard
    from oodbench.tracking import Record

ENDING = "_cells.csv"
MEASURED = ("error", "accuracy", "f1")
NEEDED = ("setting", "method", "task", "seed", "environment", "error")


@dataclass(frozen=True, eq=False)
class Scores:
    """What a method came to on a dataset setting; no table where it has no result."""

    setting: str
    method: str
    task: str
    table: pd.DataFrame | None  # seed, environment, error; accuracy and f1 for classes


def scores_of(boards: Iterable[Leaderboard]) -> list[Scores]:
    return [found for board in boards for found in _from_board(board.as_dict())]


def write_cells(scores: Sequence[Scores]) -> str:
    """A CSV file with a row per method, seed and environment, which `read_scores` reads."""
    import pandas as pd

    frames = [
        one.table.assign(setting=one.setting, method=one.method, task=one.task)
        for one in scores
        if one.table is not None
    ]
    if not frames:
        return ",".join(NEEDED) + "\n"
    frame = pd.concat(frames, ignore_index=True)
    return str(frame[[*NEEDED, *(name for name in MEASURED[1:] if name in frame)]].to_csv(index=False))


def read_scores(source: str, open_record: Callable[[], Record]) -> list[Scores]:
    """The scores that a source has: a file or folder, REVISION:PATH in git, a label or run id in the record."""
    path = Path(source)
    if path.exists():
        files = _of_interest([str(one) for one in path.iterdir()]) if path.is_dir() else [source]
        return _all({file: Path(file).read_bytes() for file in files}, source)
    revision, colon, inside = source.partition(":")
    if colon and revision and _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") is not None:
        return _all(_at_revision(source, inside), source)
    return _recorded(open_record(), source)


def read_cells(files: Iterable[Path]) -> list[Scores]:
    """The scores that `write_cells` wrote, perhaps none."""
    return [scores for file in files for scores in _parse(str(file), file.read_bytes())]


def _at_revision(source: str, inside: str) -> dict[str, bytes]:
    kind = _git("cat-file", "-t", source)
    if kind is None:
        raise UserError(
            f"the revision in {source!r} has no file or folder {inside!r}.\nPaths start at the repository's root."
        )
    if kind.strip() == b"blob":
        return {source: _git("show", source) or b""}
    names = (_git("ls-tree", "--name-only", source) or b"").decode().splitlines()
    folder = source.rstrip("/")
    return {f"{folder}/{name}": _git("show", f"{folder}/{name}") or b"" for name in _of_interest(names)}


def _git(*arguments: str) -> bytes | None:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _of_interest(files: Iterable[str]) -> list[str]:
    return sorted(file for file in files if file.endswith((ENDING, ".json")))


def _all(contents: Mapping[str, bytes], source: str) -> list[Scores]:
    found = [scores for file, content in contents.items() for scores in _parse(file, content)]
    if not any(one.table is not None for one in found):
        raise UserError(
            f"{source} has no results per seed and environment.\n"
            f"`oodbench leaderboard --format json` writes them, as do --cells FILE and `--suite NAME --output FOLDER`."
        )
    return found


def _parse(file: str, content: bytes) -> list[Scores]:
    try:
        if file.endswith(".json"):
            return [scores for board in _boards(json.loads(content)) for scores in _from_board(board)]
        return _from_cells(content)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{file} is not a file of scores that oodbench wrote: {type(error).__name__}: {error}.\n"
            f"`oodbench leaderboard --format json` and --cells write such files."
        ) from None


def _boards(document: Any) -> list[dict[str, Any]]:
    """Those of a leaderboard, of a run, or of a suite; curves have none."""
    if isinstance(document, list):
        return [board for one in document for board in _boards(one)]
    if "rows" in document:
        return [document]
    return [board for one in document.get("boards", ()) for board in _boards(one.get("leaderboards", []))]


def _from_board(board: Mapping[str, Any]) -> list[Scores]:
    import pandas as pd

    return [
        Scores(
            board["setting"],
            row["method"],
            board["task"],
            pd.DataFrame([dict(one) for one in row["results"]]) if row["results"] else None,
        )
        for row in board["rows"]
    ]


def _from_cells(content: bytes) -> list[Scores]:
    import pandas as pd

    frame = pd.read_csv(io.BytesIO(content), dtype=str)
    lacking = [name for name in NEEDED if name not in frame]
    if lacking:
        raise ValueError(f"no column {lacking[0]!r}")
    # from texts, to the last bit: pandas' own parser of numbers is quicker and not exact in all versions
    frame = frame.astype({"seed": int} | {name: float for name in MEASURED if name in frame})
    return [
        Scores(
            str(setting),
            str(method),
            str(task),
            some.drop(columns=["setting", "method", "task"]).dropna(axis=1, how="all").reset_index(drop=True),
        )
        for (setting, method, task), some in frame.groupby(["setting", "method", "task"], sort=False)
    ]


def _recorded(record: Record, name: str) -> list[Scores]:
    """The newest studies with that label, on every dataset setting; or the one study whose run id begins so."""
    from oodbench.board import compile_leaderboard

    found = [] if record.is_empty else record.labelled(name)
    if not found:
        try:
            found = [record.study(name)]
        except UserError:
            raise UserError(
                f"{name!r} is no file or folder, no REVISION:PATH in git, and no label or run id in {record.address}.\n"
                "`oodbench leaderboard DATASET --json` names labels and runs."
            ) from None
    return scores_of(compile_leaderboard(setting, [study]) for setting, study in found)
