"""Where scores to compare come from: files that oodbench wrote, a git revision, or the record."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from oodbench.board.cells import ENDING, SCORES_BYTES, MethodScores, parse_scores, scores_of
from oodbench.board.leaderboard import compile_leaderboard
from oodbench.errors import UserError
from oodbench.plugin.reading import read_bounded
from oodbench.record.tracking import Record


def read_scores(source: str, open_record: Callable[[], Record]) -> list[MethodScores]:
    """The scores that a source has: a file or folder, REVISION:PATH in git, a label or run id in the record."""
    path = Path(source)
    if path.exists():
        files = _of_interest([str(file) for file in path.iterdir()]) if path.is_dir() else [source]
        return _all({file: _content(file) for file in files}, source)
    revision, colon, inside = source.partition(":")
    if colon and revision and _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") is not None:
        return _all(_at_revision(source, inside), source)
    return _recorded(open_record(), source)


def _content(file: str) -> bytes:
    try:
        return read_bounded(Path(file), SCORES_BYTES)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.\nName a file of scores, or a folder.") from None


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


def _all(contents: Mapping[str, bytes], source: str) -> list[MethodScores]:
    scores = [method for file, content in contents.items() for method in parse_scores(file, content)]
    if not any(method.table is not None for method in scores):
        raise UserError(
            f"{source} has no results per seed and environment.\n"
            f"`oodbench leaderboard --format json` writes them, as do --cells FILE and `--suite NAME --output FOLDER`."
        )
    return scores


def _recorded(record: Record, name: str) -> list[MethodScores]:
    """The newest studies with that label, on every dataset setting; or the one study whose run id begins so."""
    studies = [] if record.is_empty else record.labelled(name)
    if not studies:
        try:
            studies = [record.study(name)]
        except UserError:
            raise UserError(
                f"{name!r} is no file or folder, no REVISION:PATH in git, and no label or run id in {record.address}.\n"
                "`oodbench leaderboard DATASET --json` names labels and runs."
            ) from None
    return scores_of(compile_leaderboard(study.record.dataset_id, [study]) for study in studies)
