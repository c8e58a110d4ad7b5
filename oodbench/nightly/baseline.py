"""The results of a suite on one night, as files that later nights are compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.board.cells import ENDING, MethodScores, read_cells, scores_of
from oodbench.errors import UserError
from oodbench.plugin.reading import read_bounded
from oodbench.study.machine import Machine

if TYPE_CHECKING:
    from oodbench.api.suites import SuiteResult

FILE = "nightly.json"


@dataclass(frozen=True)
class StudyState:
    """How a study ended."""

    dataset_id: str
    method: str
    failed_trainings: int
    failure: str = ""  # why it has no result


@dataclass(frozen=True)
class Night:
    date: str
    git_commit: str
    machine: Machine
    speed: Mapping[str, float]  # method -> CPU time, in units of the reference
    studies: Sequence[StudyState]
    scores: Sequence[MethodScores] = field(repr=False)
    speed_faults: Mapping[str, str] = field(default_factory=dict)  # method -> why there is no speed
    files: Sequence[str] = ()  # in its folder, without nightly.json


def night_of(result: SuiteResult, machine: Machine, speed: Mapping[str, float], faults: Mapping[str, str]) -> Night:
    boards = [leaderboard for board in result.boards for leaderboard in board.leaderboards]
    made = [study.record.provenance for board in result.boards for study in board.studies]
    return Night(
        date=max((each.day for each in made), default=""),
        git_commit=next((each.git_commit for each in made), ""),
        machine=machine,
        speed=dict(speed),
        studies=[
            StudyState(board.dataset_id, row.label, row.failed_trainings, row.failure)
            for board in boards
            for row in board.rows
        ],
        scores=scores_of(boards),
        speed_faults=dict(faults),
    )


def write_night(folder: Path, night: Night, result: SuiteResult, earlier: Sequence[str] = ()) -> None:
    """The boards, their page, and the rest of what is compared; files only of an earlier night are deleted."""
    names = [path.relative_to(folder).as_posix() for path in result.write(folder)]
    for name in set(earlier) - set(names):
        (folder / name).unlink(missing_ok=True)
    content = {
        "date": night.date,
        "git_commit": night.git_commit,
        "machine": asdict(night.machine),
        "speed": dict(night.speed),
        "speed_faults": dict(night.speed_faults),
        "studies": [asdict(study) for study in night.studies],
        "files": names,
    }
    (folder / FILE).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_night(folder: Path) -> Night:
    """A baseline as `write_night` left it."""
    path = folder / FILE
    try:
        content = json.loads(read_bounded(path))
        studies = [StudyState(**study) for study in content["studies"]]
        machine, speed, faults = Machine(**content["machine"]), content["speed"], content["speed_faults"]
        date, commit, files = content["date"], content["git_commit"], content["files"]
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}.\nA first run with --accept writes the baseline into {folder}."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is not a baseline that oodbench wrote: {type(error).__name__}: {error}.\n"
            "A run with --accept writes a new one."
        ) from None
    scores = read_cells(folder / file for file in files if file.endswith(ENDING))
    return Night(date, commit, machine, speed, studies, scores, faults, files)
