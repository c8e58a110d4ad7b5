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
from oodbench.study.reading import mismatch, parse_record, read_results
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
    RungSpent,
    Stability,
    StudyRecord,
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
TIMES = st.datetimes(datetime(1971, 1, 1), datetime(9998, 12, 31), timezones=ZONES)
DIFFERENCES = st.lists(st.builds(Difference, TEXTS, TEXTS, NUMBERS, NUMBERS, NUMBERS), max_size=2)
WORST = st.builds(Description, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, DIFFERENCES, DIFFERENCES)
MAYBE = st.none() | NUMBERS
ASSESSMENTS = st.builds(Assessment, COUNTS, TEXTS, TEXTS, COUNTS, MAYBE, MAYBE, MAYBE, st.none() | WORST, TEXTS)
BUDGETS = st.builds(
    Granted, COUNTS, COUNTS, COUNTS, COUNTS, TEXTS, TEXTS, st.none() | st.floats(allow_nan=False, allow_infinity=False)
)


@st.composite
def records(draw: st.DrawFn) -> StudyRecord:
    configurations = tuple(draw(st.lists(HPARAMS, min_size=1, max_size=3)))
    chosen = draw(st.integers(0, len(configurations) - 1))
    scores = draw(st.dictionaries(st.integers(), NUMBERS, max_size=3))
    finished = draw(st.booleans())
    numbers = st.lists(st.sampled_from(range(len(configurations))), unique=True).map(tuple)
    rungs = st.lists(st.builds(RungSpent, COUNTS, numbers, COUNTS, st.booleans()), max_size=1).map(tuple)
    texts = {
        name: draw(TEXTS) for name in "search_id repeat_of label method dataset dataset_id notice model reason".split()
    }
    return StudyRecord(
        schema=SCHEMA,
        study_id=draw(st.from_regex(r"[0-9a-f-]{1,16}", fullmatch=True)),
        selector=draw(st.sampled_from(["worst", "mean:auc", "oracle", "own"])),
        choose=draw(st.sampled_from(["study", "seed"])),
        choice_told=draw(TEXTS),
        ranked=draw(st.booleans()),
        settings=draw(SETTINGS),
        task=draw(st.sampled_from(["regression", "classification"])),
        model_settings=draw(SETTINGS),
        recipe=draw(SETTINGS),
        fixed=draw(st.dictionaries(TEXTS, st.one_of(VALUES, st.lists(VALUES).map(tuple)), max_size=2)),
        budget=draw(BUDGETS),
        information=tuple(draw(st.lists(TEXTS, max_size=2))),
        status="FINISHED" if finished else "FAILED",
        ledger=draw(st.builds(Ledger, *[COUNTS] * 7, NUMBERS, TEXTS, rungs)),
        configurations=configurations,
        failures=tuple(draw(st.lists(st.builds(Failure, COUNTS, COUNTS, TEXTS), max_size=2))),
        choice=Chosen(
            draw(TEXTS),
            chosen,
            draw(NUMBERS),
            scores,
            configurations[chosen],
            without_seed=draw(st.dictionaries(COUNTS, st.just(chosen), max_size=3)),
        )
        if finished
        else None,
        data=draw(st.builds(DataUsed, TEXTS, TEXTS, COUNTS, st.none() | st.lists(TEXTS).map(tuple), SIZES, SIZES)),
        opening=Opening(
            draw(TIMES),
            tuple(draw(st.lists(COUNTS))),
            tuple(draw(st.lists(COUNTS))),
            draw(st.booleans()),
            draw(st.booleans()),
            draw(TEXTS),
            draw(SIZES),
        )
        if finished
        else None,
        metrics=tuple(draw(st.lists(st.sampled_from(["auc", "mae", "own"]), max_size=2, unique=True))),
        missing=draw(st.dictionaries(TEXTS, TEXTS, max_size=2)),
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
        (lambda record: record.update(metrics=["rows"]), "it has a metric 'rows', which no metric can be called"),
        (lambda record: record.update(metrics=["auc", "auc"]), "it has a metric twice"),
        (lambda record: record.update(label=3), "label: input should be a valid string"),
        (lambda record: record.update(task="guessing"), "task: input should be 'regression' or 'classification'"),
        (lambda record: record["provenance"].update(started="soon"), "provenance.started: input should be a valid"),
        (lambda record: record.update(choice=None), "its status FINISHED does not go with its choice"),
        (lambda record: record["choice"].update(configuration=2), "it has no configuration 2, which was chosen"),
        (lambda record: record.pop("schema"), "it has no schema number"),
        (lambda record: record.update(selector="good luck"), "its selector 'good luck' is none"),
        (lambda record: record.update(study_id="../.."), "its study_id '../..' is none"),
        (lambda record: record.update(study_id=""), "its study_id '' is none"),
        (lambda record: record["ledger"].update(trainings=10**400), "it has a number of 401 digits"),
        (
            lambda record: record["provenance"].update(concluded="0001-01-01T00:00:00"),
            "0001-01-01 00:00:00 is no time",
        ),
    ],
)
def test_what_is_wrong_is_named(edit: Callable[[dict[str, Any]], object], expected: str) -> None:
    with pytest.raises(Damaged) as raised:
        parse_record(edited(edit))
    assert str(raised.value).startswith(expected)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("rungs", [[[0, 2]], [[0, 0]], [[0], [1]]], ids=["beyond", "twice", "not from below"])
def test_rungs_that_cannot_be(rungs: list[list[int]]) -> None:
    spent = [{"steps": 4, "configurations": own, "gradient_steps": 8, "anew": True} for own in rungs]
    with pytest.raises(Damaged, match="configurations that are not once in the rung before"):
        parse_record(edited(lambda record: record["ledger"].update(rungs=spent)))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_record_at_all(content: bytes) -> None:
    with pytest.raises(Damaged):
        parse_record(content)


@pytest.mark.parametrize("schema", [SCHEMA + 1, SCHEMA - 1])
def test_another_version_is_told_from_damage(schema: int) -> None:
    with pytest.raises(OtherSchema, match=f"it has schema {schema}, and this version reads schema {SCHEMA}"):
        parse_record(edited(lambda record: record.update(schema=schema, anything="else")))


def frame() -> pd.DataFrame:
    values: dict[str, Any] = {"i": 1, "O": "test", "f": 0.5, "b": True}
    return pd.DataFrame([{name: values[kind] for name, kind in COLUMNS.items()}] * 2)


CHOSEN = made_up("erm", pd.DataFrame(), trials=2, choice__configuration=1).record
FAILED = made_up("erm", None, trials=2).record


@pytest.mark.parametrize(
    "results",
    [frame(), frame().assign(accuracy=float("nan"), f1=None), frame().iloc[:0], frame().iloc[:0].astype(object)],
)
def test_result_rows_come_back(results: pd.DataFrame, tmp_path: Path) -> None:
    results.to_parquet(tmp_path / "results.parquet", index=False)
    assert read_results(tmp_path / "results.parquet", FAILED)["error"].tolist() == results["error"].tolist()


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (frame().drop(columns="chosen"), "it has no column 'chosen'"),
        (frame().assign(error="low"), "its column 'error' is of type"),
        (frame().assign(seed=0.5), "its column 'seed' is of type float64"),
        (frame().assign(chosen="yes"), "its column 'chosen' is of type"),
        (frame().assign(environment=3), "its column 'environment' is of type int64"),
        (frame().assign(environment=pd.Series(["a", None])), "its column 'environment' has values that are no texts"),
        (frame().assign(configuration=7), "it has rows of configuration 7, which the study does not have"),
        (frame().assign(configuration=0), "its chosen rows are not those of the configuration"),
        (frame().assign(chosen=False), "its chosen rows are not those of the configuration"),
        (frame().iloc[:0], "it does not have one row per seed and test environment"),
    ],
)
def test_result_rows_that_are_none(results: pd.DataFrame, expected: str, tmp_path: Path) -> None:
    results.to_parquet(tmp_path / "results.parquet", index=False)
    with pytest.raises(Damaged, match=expected):
        read_results(tmp_path / "results.parquet", CHOSEN)


def rows() -> pd.DataFrame:
    keys = [(0, seed, "test", name) for seed in (0, 1) for name in ("a", "b")]
    table = pd.DataFrame(keys, columns=["configuration", "seed", "part", "environment"])
    return table.assign(error=0.5, chosen=True)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (rows().assign(configuration=[0, 0, 0, 5]), "rows of configuration 5, which the study does not have"),
        (rows().assign(chosen=False), "its chosen rows are not those of the configuration"),
        (rows().iloc[:0], "it does not have one row per seed and test environment"),
        (rows().iloc[1:], "it does not have one row per seed and test environment"),
        (rows().assign(seed=[0, 0, 7, 7]), "it does not have one row per seed and test environment"),
        (rows().assign(environment=["a", "a", "b", "b"]), "it does not have one row per seed and test environment"),
        (rows().assign(environment=["a", 3, "a", "b"]), "its column 'environment' has values that are no texts"),
    ],
)
def test_result_rows_of_another_study(results: pd.DataFrame, expected: str) -> None:
    record = made_up("erm", rows(), trials=1, seeds=2).record
    assert not mismatch(record, rows())
    assert expected in mismatch(record, results)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 no PAR1"])
def test_a_file_that_is_not_parquet(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "results.parquet").write_bytes(content)
    with pytest.raises(Damaged, match="it is not Parquet: "):
        read_results(tmp_path / "results.parquet", CHOSEN)


def test_days_are_those_of_utc() -> None:
    made = made_up("erm", None).record.provenance
    late = datetime(2026, 1, 2, 23, 0, tzinfo=timezone(timedelta(hours=-5)))
    assert (made.day, replace(made, concluded=late).day) == ("2026-01-02", "2026-01-03")
