"""Studies packed into a submission, and read again from one: whole, with the hashes that its manifest says."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from oodbench.board.cells import ENDING, MethodScores, write_cells
from oodbench.board.leaderboard import Leaderboard, scores_on_test
from oodbench.errors import UserError
from oodbench.report.sweep import sweep_files
from oodbench.study.document import Damaged, OtherSchema, read_document, write_document
from oodbench.study.machine import this_machine
from oodbench.study.reading import parse_record, read_results
from oodbench.study.record import RESULTS_FILE, STUDY_FILE, ConcludedStudy
from oodbench.submission.archive import MANIFEST, read_members, write_members
from oodbench.submission.manifest import SCHEMA, Manifest, packages_of, sha256, sources_of
from oodbench.submission.planning import plan_records
from oodbench.submission.table import check_table

if TYPE_CHECKING:
    from oodbench.study.study import Study

T = TypeVar("T")
BOARD = "board"
LONGEST = 300  # letters of what is wrong


@dataclass(frozen=True, eq=False)
class Submission:
    """What a file holds, with every hash as its manifest says."""

    path: Path
    manifest: Manifest
    studies: tuple[ConcludedStudy, ...]
    tables: Mapping[str, bytes]  # for people: scores, what was tried and chosen


def pack(studies: Sequence[ConcludedStudy], path: Path) -> Manifest:
    """Write finished studies into one file. They must be what is installed here: it vouches for its source code."""
    planned = plan_records([study.record for study in studies])
    members: dict[str, bytes] = {}
    sources: dict[str, dict[str, str]] = {}
    packages: dict[str, str] = {}
    for study in studies:
        record = study.record
        again = planned.studies.get(record.study_id)
        _check_unchanged(study, again, planned.faults.get(record.study_id, ""))
        assert again is not None
        assert study.results is not None
        sources[record.study_id] = sources_of(again)
        packages |= packages_of(again)
        members[_member(record.study_id, STUDY_FILE)] = write_document(record)
        members[_member(record.study_id, RESULTS_FILE)] = study.results.to_parquet(index=False, compression="snappy")
    members |= tables_of(studies)
    manifest = Manifest(
        SCHEMA,
        {name: sha256(content) for name, content in sorted(members.items())},
        sources,
        dict(sorted(packages.items())),
        this_machine(),
    )
    write_members(path, {MANIFEST: write_document(manifest), **members})
    return manifest


def _check_unchanged(study: ConcludedStudy, again: Study | None, fault: str) -> None:
    record = study.record
    if again is None:
        raise UserError(f"{record.title} cannot be handed in: {fault}.\nInstall it as a plug-in, and run it as one.")
    if again.study_id != record.study_id:
        raise UserError(
            f"{record.title} cannot be handed in: its method, its dataset or oodbench has changed since it was run.\n"
            "Run it again with what is installed now, and hand in that."
        )


def tables_of(studies: Sequence[ConcludedStudy]) -> dict[str, bytes]:
    """The CSV files of all studies, as beside a board; there is no board that would have to be compiled."""
    import pandas as pd

    scores = [
        MethodScores(
            study.record.dataset_id, study.label, study.record.task, pd.DataFrame(scores_on_test(study.results))
        )
        for study in studies
        if not study.record.repeat_of
    ]
    by_dataset: dict[str, list[ConcludedStudy]] = {}
    for study in studies:
        by_dataset.setdefault(study.record.dataset_id, []).append(study)
    boards = [Leaderboard(dataset_id, (), studies=tuple(own)) for dataset_id, own in by_dataset.items()]
    texts = {f"{BOARD}{ENDING}": write_cells(scores), **sweep_files(BOARD, boards)}
    return {name: text.encode() for name, text in texts.items()}


def read_submission(path: Path) -> Submission:
    """Raises a UserError that says in what the file is not as it was packed."""
    try:
        return _parse(path, read_members(path))
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}.\nName a file that `oodbench submit` wrote."
        ) from None
    except OtherSchema as error:
        raise UserError(
            f"{path} was written by another version of oodbench: {_one_line(error)}.\n"
            "Read it with that version, or pack it again."
        ) from None
    except Damaged as error:
        raise UserError(
            f"{path} is not as `oodbench submit` wrote it: {_one_line(error)}.\n"
            "Get it once more, or pack the studies again."
        ) from None


def _one_line(error: ValueError) -> str:
    """It may quote the file, which is somebody else's."""
    return " ".join(str(error).split())[:LONGEST]


def _parse(path: Path, members: dict[str, bytes]) -> Submission:
    if MANIFEST not in members:
        raise Damaged(f"it has no {MANIFEST}")
    manifest = _document(MANIFEST, lambda: read_document(Manifest, members.pop(MANIFEST), SCHEMA))
    for name in manifest.files.keys() ^ members.keys():
        raise Damaged(f"its manifest names {name}" if name not in members else f"its manifest does not name {name}")
    for name, content in members.items():
        if sha256(content) != manifest.files[name]:
            raise Damaged(f"{name} was changed after it was packed: its hash is another")
    folders = {name.split("/")[1]: None for name in members if name.startswith("studies/")}
    if not folders or manifest.sources.keys() != folders.keys():
        raise Damaged("its manifest does not have the sources of its studies")
    studies = tuple(_study(study_id, members) for study_id in folders)
    return Submission(path, manifest, studies, {name: members[name] for name in members if name.endswith(".csv")})


def _study(study_id: str, members: Mapping[str, bytes]) -> ConcludedStudy:
    names = {file: _member(study_id, file) for file in (STUDY_FILE, RESULTS_FILE)}
    for name in names.values():
        if name not in members:
            raise Damaged(f"it has no {name}")
    record = _document(names[STUDY_FILE], lambda: parse_record(members[names[STUDY_FILE]]))
    if record.study_id != study_id or record.choice is None:
        raise Damaged(f"{names[STUDY_FILE]} is of another study, or of one that failed")
    table = members[names[RESULTS_FILE]]
    _document(names[RESULTS_FILE], lambda: check_table(table))
    return ConcludedStudy(record, _document(names[RESULTS_FILE], lambda: read_results(io.BytesIO(table), record)))


def _member(study_id: str, file: str) -> str:
    return f"studies/{study_id}/{file}"


def _document(name: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except Damaged as error:
        raise Damaged(f"{name}: {error}") from None
    except OtherSchema as error:
        raise OtherSchema(f"{name}: {error}") from None
