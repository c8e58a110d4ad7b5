"""Submissions, and what somebody could do to them who knows how they are made."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from oodbench.study.document import read_document, write_document
from oodbench.study.reading import parse_record, read_results
from oodbench.study.record import RESULTS_FILE, STUDY_FILE, ConcludedStudy
from oodbench.submission.archive import MANIFEST, read_members, write_members
from oodbench.submission.manifest import SCHEMA, Manifest, sha256
from oodbench.submission.submission import tables_of

Edit = Callable[[ConcludedStudy], ConcludedStudy]


def forge(
    path: Path,
    target: Path,
    edit: Edit = lambda study: study,
    tables: Callable[[bytes], bytes] = lambda table: table,
    **manifest: Any,
) -> Path:
    """The submission with its one study edited, and everything else made to go with it: hashes, tables, folders."""
    members = read_members(path)
    before = read_document(Manifest, members[MANIFEST], SCHEMA)
    folder = next(name for name in members if name.endswith(STUDY_FILE)).rpartition("/")[0]
    record = parse_record(members[f"{folder}/{STUDY_FILE}"])
    results = read_results(io.BytesIO(members[f"{folder}/{RESULTS_FILE}"]), record)
    edited = edit(ConcludedStudy(record, results))
    assert edited.results is not None
    own = f"studies/{edited.record.study_id}"
    forged = {
        f"{own}/{STUDY_FILE}": write_document(edited.record),
        f"{own}/{RESULTS_FILE}": edited.results.to_parquet(index=False),
        **{name: tables(table) for name, table in tables_of([edited]).items()},
    }
    after = replace(
        before,
        files={name: sha256(content) for name, content in forged.items()},
        sources={edited.record.study_id: next(iter(before.sources.values()))},
        **manifest,
    )
    write_members(target, {MANIFEST: write_document(after), **forged})
    return target


def with_cell(study: ConcludedStudy, change: Callable[[float], float], rows: int | None = 1) -> ConcludedStudy:
    """With other errors of the chosen configuration in test environments: of the first rows, or of all."""
    assert study.results is not None
    results = study.results.copy()
    test = results.index[results["chosen"] & (results["part"] == "test")][:rows]
    results.loc[test, "error"] = results.loc[test, "error"].map(change)
    return replace(study, results=results)


def same_results(a: ConcludedStudy, b: ConcludedStudy) -> bool:
    assert a.results is not None
    assert b.results is not None
    pd.testing.assert_frame_equal(a.results, b.results, check_dtype=False)
    return True
