"""The record of a study: it comes back as it was written, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import given, settings

from oodbench.kit.stability import Description, Difference
from oodbench.study.document import Damaged, OtherSchema, write_document
from oodbench.study.record import (
    COLUMNS,
    SCHEMA,
    Assessment,
    Chosen,
    DataUsed,
    Failure,
    Granted,
    Ledger,
    Opening,
    Provenance,
    Stability,
    StudyRecord,
    parse_record,
    read_results,
)
from studies import made_up

TEXTS = st.text(max_size=8)
NUMBERS = st.floats(allow_nan=False)
COUNTS = st.integers(0, 2**70)
VALUES = st.one_of(NUMBERS, st.integers(), TEXTS, st.booleans())
SETTINGS = st.dictionaries(TEXTS, st.one_of(VALUES, st.lists(VALUES, max_size=3).map(tuple), st.none()), max_size=3)
HPARAMS = st.dictionaries(TEXTS, VALUES, max_size=3)
SIZES = st.dictionaries(TEXTS, COUNTS, max_size=3)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=-5))])
TIMES = st.datetimes(min_value=datetime(1971, 1, 1), timezones=ZONES)
DIFFERENCES = st.lists(st.builds(Difference, TEXTS, TEXTS, NUMBERS, NUMBERS, NUMBERS), max_size=2)
WORST = st.builds(Description, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, DIFFERENCES, DIFFERENCES)
ASSESSMENTS = st.builds(
    Assessment, COUNTS, TEXTS, TEXTS, COUNTS, st.none() | NUMBERS, st.none() | NUMBERS, st.none() | WORST, TEXTS
)
BUDGETS = st.builds(
    Granted, COUNTS, COUNTS, COUNTS, COUNTS, TEXTS, TEXTS, st.none() | st.floats(allow_nan=False, allow_infinity=False)
)


@st.composite
def records(draw: st.DrawFn) -> StudyRecord:
    configurations = tuple(draw(st.lists(HPARAMS, min_size=1, max_size=3)))
    chosen = draw(st.integers(0, len(configurations) - 1))
    scores = draw(st.dictionaries(st.integers(), NUMBERS, max_size=3))
    finished = draw(st.booleans())
    texts = {
        name: draw(TEXTS)
        for name in "study_id search_id repeat_of label method dataset dataset_id notice model selector reason".split()
    }
    return StudyRecord(
        schema=SCHEMA,
        ranked=draw(st.booleans()),
        settings=draw(SETTINGS),
        task=draw(st.sampled_from(["regression", "classification"])),
        model_settings=draw(SETTINGS),
        recipe=draw(SETTINGS),
        fixed=draw(st.dictionaries(TEXTS, st.one_of(VALUES, st.lists(VALUES).map(tuple)), max_size=2)),
        budget=draw(BUDGETS),
        information=tuple(draw(st.lists(TEXTS, max_size=2))),
        status="FINISHED" if finished else "FAILED",
        ledger=draw(st.builds(Ledger, *[COUNTS] * 7, NUMBERS, TEXTS)),
        configurations=configurations,
        failures=tuple(draw(st.lists(st.builds(Failure, COUNTS, COUNTS, TEXTS), max_size=2))),
        choice=Chosen(draw(TEXTS), chosen, draw(NUMBERS), scores, configurations[chosen]) if finished else None,
        data=draw(st.builds(DataUsed, TEXTS, TEXTS, COUNTS, st.none() | st.lists(TEXTS).map(tuple), SIZES, SIZES)),
        opening=Opening(draw(TIMES), tuple(draw(st.lists(COUNTS))), draw(st.booleans()), draw(TEXTS), draw(SIZES))
        if finished
        else None,
        stability=draw(st.none() | st.builds(Stability, NUMBERS, st.lists(ASSESSMENTS, max_size=2).map(tuple))),
        models=draw(st.sampled_from(["loadable", "arrays", "nothing"])),
        provenance=draw(
            st.builds(Provenance, st.dictionaries(TEXTS, TEXTS, max_size=2), TEXTS, TEXTS, TEXTS, TIMES, TIMES)
        ),
        **texts,
    )


@settings(deadline=None)  # the first time, pydantic is imported
@given(records())
def test_a_record_comes_back_as_it_was_written(record: StudyRecord) -> None:
    again = parse_record(write_document(record))
    assert again == record
    assert write_document(again) == write_document(record)
    for ours, read in zip(record.configurations, again.configurations, strict=True):  # 1, 1.0 and True are equal
        assert {name: type(value) for name, value in read.items()} == {
            name: type(value) for name, value in ours.items()
        }


def edited(edit: Callable[[dict[str, Any]], object]) -> bytes:
    content = json.loads(write_document(made_up("erm", pd.DataFrame(), trials=2).record))
    edit(content)
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda record: record.pop("ledger"), "ledger: field required"),
        (lambda record: record["ledger"].pop("seconds"), "it lacks the field 'ledger.seconds'"),
        (lambda record: record["budget"].pop("seconds"), "it lacks the field 'budget.seconds'"),
        (lambda record: record.update(mood="good"), "it has the unknown field 'mood'"),
        (lambda record: record["choice"].update(mood=1), "it has the unknown field 'choice.mood'"),
        (lambda record: record["ledger"].update(trials="2"), "ledger.trials: input should be a valid integer"),
        (lambda record: record["ledger"].update(trials=2.0), "ledger.trials: input should be a valid integer"),
        (lambda record: record["ledger"].update(seconds=None), "ledger.seconds: input should be a valid number"),
        (lambda record: record.update(label=3), "label: input should be a valid string"),
        (lambda record: record.update(task="guessing"), "task: input should be 'regression' or 'classification'"),
        (lambda record: record["provenance"].update(started="soon"), "provenance.started: input should be a valid"),
        (lambda record: record.update(choice=None), "its status FINISHED does not go with its choice"),
        (lambda record: record["choice"].update(configuration=2), "it has no configuration 2, which was chosen"),
        (lambda record: record.pop("schema"), "it has no schema number"),
    ],
)
def test_what_is_wrong_is_named(edit: Callable[[dict[str, Any]], object], expected: str) -> None:
    with pytest.raises(Damaged) as raised:
        parse_record(edited(edit))
    assert str(raised.value).startswith(expected)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_record_at_all(content: bytes) -> None:
    with pytest.raises(Damaged):
        parse_record(content)


@pytest.mark.parametrize("schema", [SCHEMA + 1, SCHEMA - 1])
def test_another_version_is_told_from_damage(schema: int) -> None:
    with pytest.raises(OtherSchema, match=f"it has schema {schema}, and this version reads schema {SCHEMA}"):
        parse_record(edited(lambda record: record.update(schema=schema, anything="else")))


def frame() -> pd.DataFrame:
    values: dict[str, Any] = {"i": 1, "O": "text", "f": 0.5, "b": True}
    return pd.DataFrame([{name: values[kind] for name, kind in COLUMNS.items()}] * 2)


@pytest.mark.parametrize(
    "results",
    [frame(), frame().assign(accuracy=float("nan"), f1=None), frame().iloc[:0], frame().iloc[:0].astype(object)],
)
def test_result_rows_come_back(results: pd.DataFrame, tmp_path: Path) -> None:
    results.to_parquet(tmp_path / "results.parquet", index=False)
    assert read_results(tmp_path / "results.parquet")["error"].tolist() == results["error"].tolist()


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (frame().drop(columns="chosen"), "it has no column 'chosen'"),
        (frame().assign(error="low"), "its column 'error' is of type"),
        (frame().assign(seed=0.5), "its column 'seed' is of type float64"),
        (frame().assign(chosen="yes"), "its column 'chosen' is of type"),
        (frame().assign(environment=3), "its column 'environment' is of type int64"),
    ],
)
def test_result_rows_that_are_none(results: pd.DataFrame, expected: str, tmp_path: Path) -> None:
    results.to_parquet(tmp_path / "results.parquet", index=False)
    with pytest.raises(Damaged, match=expected):
        read_results(tmp_path / "results.parquet")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 no PAR1"])
def test_a_file_that_is_not_parquet(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "results.parquet").write_bytes(content)
    with pytest.raises(Damaged, match="it is not Parquet: "):
        read_results(tmp_path / "results.parquet")


def test_days_are_those_of_utc() -> None:
    made = made_up("erm", None).record.provenance
    late = datetime(2026, 1, 2, 23, 0, tzinfo=timezone(timedelta(hours=-5)))
    assert (made.day, replace(made, concluded=late).day) == ("2026-01-02", "2026-01-03")
