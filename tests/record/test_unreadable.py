"""One bad entry stops nothing: it is named with its run, what is wrong and what to do, and the rest is shown."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import oodbench
from oodbench.board.leaderboard import compile_leaderboard
from oodbench.errors import Notice, UnreadableRecord, UserError
from oodbench.record.delivery import deliver, deliver_all
from oodbench.record.outbox import Outbox
from oodbench.record.sources import read_scores
from oodbench.record.tracking import Record
from oodbench.report.stability import look_up
from oodbench.report.tables import notes, texts_of
from oodbench.study.outcome import Outcome
from oodbench.study.record import StudyRecord
from parcels import outcome, put

Edit = Callable[[Path], object]


class Kept:
    """A record with two studies, whose files a test may damage."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        record = Record(None, directory)
        for parcel in put(directory, "erm", "irm"):
            deliver(record, parcel)
            Outbox(directory).remove(parcel)
        self.runs = {study.label: study.run_id for study in record.studies("selection_bias")}

    def file(self, label: str, name: str) -> Path:
        return self.directory / "artifacts" / self.runs[label] / "artifacts" / name

    def board(self) -> oodbench.Leaderboard:
        return oodbench.leaderboard("selection_bias", directory=self.directory)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(tmp_path_factory.mktemp("record"))


@pytest.fixture
def kept(made: Kept, tmp_path: Path) -> Iterator[Kept]:
    """As it was, after the test."""
    shutil.copytree(made.directory / "artifacts", tmp_path / "artifacts")
    yield made
    shutil.rmtree(made.directory / "artifacts")
    shutil.copytree(tmp_path / "artifacts", made.directory / "artifacts")


def edit(**values: Any) -> Edit:
    def change(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return change


DAMAGE: list[tuple[str, Edit, str]] = [
    ("study.json", Path.unlink, "was recorded by another version of oodbench: it has no study.json"),
    ("study.json", edit(schema=99), "was recorded by another version of oodbench: it has schema 99, and this version"),
    ("study.json", edit(mood="good"), "is damaged: study.json: it has the unknown field 'mood'"),
    ("study.json", edit(ledger=None), "is damaged: study.json: ledger: input should be"),
    ("study.json", lambda path: path.write_bytes(path.read_bytes()[:-9]), "is damaged: study.json: it is not JSON"),
    ("study.json", lambda path: path.write_bytes(b""), "is damaged: study.json: it is not JSON"),
    ("results.parquet", Path.unlink, "is damaged: it has no results.parquet"),
    ("results.parquet", lambda path: path.write_bytes(b"PAR1"), "is damaged: results.parquet: it is not Parquet"),
    (
        "results.parquet",
        lambda path: pd.read_parquet(path).drop(columns="error").to_parquet(path),
        "is damaged: results.parquet: it has no column 'error'",
    ),
    (
        "results.parquet",
        lambda path: pd.read_parquet(path).assign(configuration=7).to_parquet(path),
        "is damaged: results.parquet: it has rows of configuration 7, which the study does not have",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "damage", "expected"), DAMAGE)
def test_a_bad_study_is_named_and_the_rest_is_shown(kept: Kept, name: str, damage: Edit, expected: str) -> None:
    damage(kept.file("irm", name))
    with pytest.warns(Notice) as warned:
        board = kept.board()
    assert [row.label for row in board.rows] == ["erm"]
    (told,) = (str(one.message) for one in warned)
    what, remedy = told.splitlines()
    assert what.startswith(f"left out: run {kept.runs['irm']} (irm) {expected}")
    assert remedy == "Run the study again with --fresh, or delete the run in `oodbench ui`."
    damage(kept.file("erm", name))
    with pytest.raises(UnreadableRecord, match=expected.replace("(", r"\(")) as raised:
        kept.board()
    assert str(raised.value).count("\n") == 1


def test_everything_that_reads_a_study_names_a_bad_one(kept: Kept) -> None:
    edit(schema=7)(kept.file("irm", "study.json"))
    record = Record(None, kept.directory)
    for read in (
        lambda: look_up(record, kept.runs["irm"], None, "validation"),
        lambda: read_scores("irm", lambda: record),
        lambda: read_scores(kept.runs["irm"], lambda: record),
    ):
        with pytest.raises(UnreadableRecord, match="another version of oodbench: it has schema 7"):
            read()
    assert [scores.method for scores in read_scores("erm", lambda: record)] == ["erm"]


def test_a_run_without_the_tags_it_is_found_by(kept: Kept) -> None:
    record = Record(None, kept.directory)
    record.client.delete_tag(kept.runs["irm"], "oodbench.label")
    try:
        with pytest.warns(Notice, match=f"run {kept.runs['irm']} .* it has no tag oodbench.label"):
            assert [row.label for row in kept.board().rows] == ["erm"]
    finally:
        record.client.set_tag(kept.runs["irm"], "oodbench.label", "irm")


def test_a_run_without_the_parameter_it_is_asked_by(kept: Kept) -> None:
    with closing(sqlite3.connect(kept.directory / "mlflow.db")) as database, database:
        database.execute("DELETE FROM params WHERE key = 'seeds' AND run_uuid = ?", [kept.runs["irm"]])
    try:
        with pytest.warns(Notice, match=f"run {kept.runs['irm']} .* it has no parameter seeds"):
            board = oodbench.leaderboard("selection_bias", seeds=2, directory=kept.directory)
        assert [row.label for row in board.rows] == ["erm"]
        assert {row.label for row in kept.board().rows} == {"erm", "irm"}  # otherwise nobody asks
    finally:
        Record(None, kept.directory).client.log_param(kept.runs["irm"], "seeds", "2")


def test_boards_say_which_of_their_studies_cannot_be_read(kept: Kept) -> None:
    """Not that they were not run."""
    kept.file("irm", "study.json").write_text("{")
    record = Record(None, kept.directory)
    planned: Any = [_Planned(label) for label in ("erm", "irm", "srm")]
    with pytest.warns(Notice, match="left out: run .* is damaged: study.json: it is not JSON"):
        (reading, *_) = record.read_boards([planned, planned[2:]])
    board = compile_leaderboard(
        "data", reading.studies, ["erm", "irm", "srm"], unreadable=reading.unreadable, mixed=True
    )
    texts = {row.label: texts_of(board, row, "{}")[1] for row in board.rows}
    assert texts["erm"] not in ("unreadable", "not run")
    assert (texts["irm"], texts["srm"]) == ("unreadable", "not run")
    assert f"irm: unreadable: run {kept.runs['irm']} (irm) is damaged: study.json: it is not JSON" in notes(board)
    with pytest.raises(UnreadableRecord, match="is damaged: study.json"):
        record.read_boards([planned[1:], planned[2:]])


def test_the_command_line_shows_the_notice_on_standard_error(kept: Kept, cli: Callable[..., Any]) -> None:
    kept.file("irm", "study.json").unlink()
    done = cli("leaderboard", "selection_bias", "--json", "--directory", str(kept.directory))
    assert done.code == 0, done.err
    assert [row["method"] for row in done.json()["rows"]] == ["erm"]
    notice, remedy = done.err.splitlines()
    assert notice.startswith(f"notice: left out: run {kept.runs['irm']} (irm) was recorded by another version")
    assert "--fresh" in remedy


def test_parameters_and_metrics_are_never_read_back(kept: Kept) -> None:
    before = kept.board()
    client = Record(None, kept.directory).client
    client.log_metric(kept.runs["erm"], "failed_trainings", 99)
    client.set_tag(kept.runs["erm"], "oodbench.information", "everything")
    client.set_tag(kept.runs["erm"], "oodbench.task", "classification")
    assert kept.board() == before


def test_a_study_is_downloaded_once_and_what_a_run_concluded_not_at_all(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    record = Record(None, kept.directory)
    fetch = record.client.download_artifacts

    def download(run_id: str, path: str, *more: Any) -> Any:
        fetched.append(path)
        return fetch(run_id, path, *more)

    monkeypatch.setattr(record.client, "download_artifacts", download)
    planned: Any = [_Planned(label) for label in ("erm", "irm")]
    first, again = record.records_of(planned), record.records_of(planned)
    assert sorted(fetched) == ["results.parquet", "results.parquet", "study.json", "study.json"]
    assert [study.record for study in first] == [study.record for study in again]
    fetched.clear()
    concluded = Record(None, kept.directory)
    monkeypatch.setattr(concluded.client, "download_artifacts", lambda *more: fetched.append(more[1]))
    (parcel,) = put(kept.directory, "erm")
    concluded.keep(parcel, "its-run")
    Outbox(kept.directory).remove(parcel)
    (study,) = concluded.records_of(planned[:1])
    assert (study.run_id, study.results is parcel.results, fetched) == ("its-run", True, [])


class _Planned:
    """As much of a planned study as its record is found by."""

    dataset_id = "selection_bias"

    def __init__(self, label: str) -> None:
        self.study_id = self.label = label


@pytest.mark.parametrize(
    ("file", "damage", "expected"),
    [
        ("parcel.json", lambda path: path.write_bytes(b"{"), "it is damaged: parcel.json: it is not JSON"),
        ("parcel.json", edit(mood=1), "it is damaged: parcel.json: it has the unknown field 'mood'"),
        ("parcel.json", edit(id="../.."), "it is damaged: parcel.json: its id is '../..', and its folder is"),
        ("parcel.json", Path.unlink, "it is damaged: it has no parcel.json"),
        ("artifacts/study.json", edit(study_id=""), "it is damaged: study.json: its study_id '' is none"),
        ("artifacts/study.json", edit(label=1), "it is damaged: study.json: label: input should be a valid string"),
        ("artifacts/results.parquet", lambda path: path.write_bytes(b""), "it is damaged: results.parquet: it is not"),
    ],
)
def test_a_damaged_parcel_is_set_aside_with_its_reason(tmp_path: Path, file: str, damage: Edit, expected: str) -> None:
    bad, good = put(tmp_path, "irm", "erm")
    damage(bad.folder / file)
    with pytest.warns(Notice, match=f"parcel {bad.id} is left out: {expected}") as warned:
        (parcel,) = Outbox(tmp_path).parcels()
    assert (parcel.id, parcel.record) == (good.id, good.record)
    assert str(warned[0].message).count("\n") == 1
    assert expected.removeprefix("it is damaged: ") in (tmp_path / "damaged" / bad.id / "reason.txt").read_text()
    assert [found.id for found in Outbox(tmp_path).parcels()] == [good.id]  # and is not named again


def test_a_parcel_of_another_version_stays_for_that_version(tmp_path: Path) -> None:
    other, good = put(tmp_path, "irm", "erm")
    edit(schema=3)(other.folder / "parcel.json")
    for _ in range(2):
        with pytest.warns(Notice, match="another version of oodbench wrote it: it has schema 3"):
            assert [parcel.id for parcel in Outbox(tmp_path).parcels()] == [good.id]
    assert other.folder.is_dir()


def test_sync_delivers_the_rest_and_says_what_it_left_out(tmp_path: Path, cli: Callable[..., Any]) -> None:
    bad, _ = put(tmp_path, "irm", "erm")
    (bad.folder / "parcel.json").write_text("{}")
    done = cli("sync", "--json", "--directory", str(tmp_path))
    assert done.code == 1
    left, delivered = done.json()
    assert (left["method"], left["delivered"]) == (bad.id, False)
    assert left["reason"].startswith("it is damaged: parcel.json: it has no schema number.\nIt is kept in ")
    assert (delivered["method"], delivered["delivered"]) == ("erm", True)
    assert deliver_all(tmp_path, None) == []


def test_studies_are_found_by_their_budget(kept: Kept) -> None:
    record = Record(None, kept.directory)
    assert {study.label for study in record.studies("selection_bias", trials=1, seeds=2)} == {"erm", "irm"}
    assert record.studies("selection_bias", trials=2) == []
    with pytest.raises(UserError, match="no study on 'selection_bias' .* has this budget"):
        oodbench.leaderboard("selection_bias", trials=2, directory=kept.directory)


def test_a_failed_study_is_recorded_with_its_reason(tmp_path: Path) -> None:
    whole = outcome("srm")
    record: StudyRecord = replace(whole.record, status="FAILED", reason="it diverged", choice=None, opening=None)
    parcel = Outbox(tmp_path).put(Outcome(record, whole.results.iloc[:0]), "", fresh=False)
    deliver(Record(None, tmp_path), parcel)
    (row,) = oodbench.leaderboard("selection_bias", directory=tmp_path).rows
    assert (row.failure, row.cells["mean_error"].value) == ("it diverged", None)
