"""Which recorded studies are handed in: those of datasets and methods, or all of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oodbench.api.suites import SuiteBoardOptions, suite_leaderboards
from oodbench.errors import UserError
from oodbench.study.plan import dataset_id_of
from oodbench.study.record import ConcludedStudy
from oodbench.submission.adding import HANDED_IN, is_from


def suite_studies(name: str, options: Mapping[str, Any]) -> list[ConcludedStudy]:
    """All that the record has of exactly these studies, each once."""
    result = suite_leaderboards(name, **options)
    found = [study for board in result.boards for study in board.studies]
    return list({study.record.study_id: study for study in reversed(found)}.values())[::-1]


def chosen_studies(options: SuiteBoardOptions, settings: Mapping[str, Any]) -> list[ConcludedStudy]:
    """Of each label on each dataset the newest; of all datasets and methods, unless some are named."""
    from oodbench.record.tracking import Record

    record = Record(options.tracking_uri, options.folder)
    named = [dataset_id_of(name, settings) for name in options.datasets]
    dataset_ids = named or ([] if record.is_empty else record.dataset_ids())
    studies: list[ConcludedStudy] = []
    if not record.is_empty:
        for dataset_id in dataset_ids:
            studies += record.studies(dataset_id, options.trials, options.seeds, options.selector)
    wanted = _of_methods(studies, options.methods)
    if not wanted:
        raise UserError(
            f"there are no such studies in {record.address}.\n"
            "Name the folder of the run's record, .oodbench unless it had another --directory."
        )
    return wanted


def _of_methods(studies: Sequence[ConcludedStudy], methods: Sequence[str]) -> list[ConcludedStudy]:
    """Those that were handed in by others are left to them."""
    own = [study for study in studies if not is_from(study, HANDED_IN)]
    return [study for study in own if not methods or study.record.method in methods or study.label in methods]
