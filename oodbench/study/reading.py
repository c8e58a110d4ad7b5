"""What was stored of a study, read again. Reading is strict: what does not fit is said, and nothing is guessed."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from oodbench.engine.metric import TAKEN
from oodbench.study.document import Damaged, read_document
from oodbench.study.record import COLUMNS, CONSTANT, NO_CONFIGURATION, SCHEMA, Chosen, StudyRecord

if TYPE_CHECKING:
    import pandas as pd

YEARS = range(1970, 9999)  # in every time zone
SELECTOR = re.compile(r"[^\W\d]\w*(:\w+)?")  # perhaps of a plug-in that is not installed here
IDENTITY = re.compile(r"[\w-]+")
NOT_EVERY_ROW = "it does not have one row per seed and test environment"


def parse_record(content: bytes) -> StudyRecord:
    """What study.json holds. Raises `OtherSchema` or `Damaged`."""
    record = read_document(StudyRecord, content, SCHEMA)
    if (record.status == "FINISHED") != (record.choice is not None and record.opening is not None):
        raise Damaged(f"its status {record.status} does not go with its choice")
    if record.choice:
        _check_choice(record, record.choice)
    _check_rungs(record)
    if not SELECTOR.fullmatch(record.selector):
        raise Damaged(f"its selector {record.selector!r} is none")
    taken = sorted(TAKEN & set(record.metrics))
    if taken:
        raise Damaged(f"it has a metric {taken[0]!r}, which no metric can be called")
    if len(set(record.metrics)) < len(record.metrics):
        raise Damaged("it has a metric twice")
    if not IDENTITY.fullmatch(record.study_id):
        raise Damaged(f"its study_id {record.study_id!r} is none")  # it becomes the name of a folder
    for moment in (record.provenance.started, record.provenance.concluded):
        if moment.tzinfo is None or moment.year not in YEARS:
            raise Damaged(f"{moment} is no time at which a study can have run")
    return record


def _check_choice(record: StudyRecord, choice: Chosen) -> None:
    named = {choice.configuration, *choice.by_seed.values(), *choice.without_seed.values()}
    beyond = named - set(range(len(record.configurations)))
    if beyond:
        raise Damaged(f"it has no configuration {min(beyond)}, which was chosen")
    seeds = seeds_of(record)
    every = len(choice.by_seed) == record.budget.seeds and all(seed in seeds for seed in choice.by_seed)
    if choice.by_seed and not every:
        raise Damaged("its choice is not one for every seed")


def _check_rungs(record: StudyRecord) -> None:
    before = set(range(len(record.configurations)))
    for rung in record.ledger.rungs:
        own = set(rung.configurations)
        if not own <= before or len(own) < len(rung.configurations):
            raise Damaged("a rung of its search has configurations that are not once in the rung before")
        before = own


def read_results(file: Path | BinaryIO, record: StudyRecord) -> pd.DataFrame:
    """What results.parquet holds of this study. Raises `Damaged`."""
    import pandas as pd

    try:
        results = pd.read_parquet(file)
    except Exception as error:  # of damaged files pyarrow raises whatever its parts raise
        raise Damaged(f"it is not Parquet: {' '.join(str(error).split())[:80]}") from None
    kinds = COLUMNS | dict.fromkeys(record.metrics, "f")
    for name, kind in kinds.items():
        if name not in results:
            raise Damaged(f"it has no column {name!r}")
        if not _holds(results[name], kind):
            raise Damaged(f"its column {name!r} is of type {results[name].dtype}")
    fault = mismatch(record, results)
    if fault:
        raise Damaged(fault)
    empty = [name for name, kind in kinds.items() if kind == "f" and results[name].isna().all()]
    return results.assign(**dict.fromkeys(empty, math.nan))  # a column without values may be of any type


def seeds_of(record: StudyRecord) -> range:
    return range(record.budget.seed, record.budget.seed + record.budget.seeds)


def mismatch(record: StudyRecord, results: pd.DataFrame) -> str:
    """In what the rows do not go with the study; empty where they do."""
    for name in ("part", "environment"):
        if not results[name].map(lambda value: isinstance(value, str)).all():
            return f"its column {name!r} has values that are no texts"
    constant = results["part"] == CONSTANT
    if not (constant == (results["configuration"] == NO_CONFIGURATION)).all():
        return f"its rows of the {CONSTANT} are not those without a configuration"
    beyond = set(results.loc[~constant, "configuration"]) - set(range(len(record.configurations)))
    if beyond:
        return f"it has rows of configuration {min(beyond)}, which the study does not have"
    if record.choice is None:
        return ""
    if results.empty:  # its columns may be of any type
        return NOT_EVERY_ROW
    if not (results["chosen"] == (results["configuration"] == results["seed"].map(record.choice.of_seed))).all():
        return "its chosen rows are not those of the configuration that was chosen"
    test = results[results["chosen"] & (results["part"] == "test")]
    count, environments = record.budget.seeds, test["environment"].nunique()
    seeds = seeds_of(record)  # it may be said to have more than fit into the memory
    every_seed = test["seed"].nunique() == count and all(seed in seeds for seed in test["seed"].unique().tolist())
    once = not test.duplicated(["seed", "environment"]).any()
    if not (environments and every_seed and once and len(test) == count * environments):
        return NOT_EVERY_ROW
    scores = ["error"] if record.task == "regression" else ["error", "accuracy", "f1"]
    if not all(test[name].notna().all() and (test[name].abs() < math.inf).all() for name in scores):
        return "it has test rows without a score"
    return ""


def _holds(column: pd.Series[float], kind: str) -> bool:
    from pandas.api.types import is_bool_dtype, is_float_dtype, is_integer_dtype, is_object_dtype, is_string_dtype

    if kind == "O":
        return is_string_dtype(column) or is_object_dtype(column)
    check = {"i": is_integer_dtype, "f": is_float_dtype, "b": is_bool_dtype}[kind]
    # a column of no rows has no type, nor has one of no values: a regression has no accuracy
    return bool(check(column) or (column.isna().all() if kind == "f" else not len(column)))
