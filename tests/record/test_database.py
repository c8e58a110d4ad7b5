"""The embedded database: whole or not there, whenever its making is stopped; and what waits for it says so."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from oodbench.errors import Notice, Unreachable
from oodbench.record import database
from oodbench.record.delivery import deliver
from oodbench.record.tracking import Record
from parcels import kill_in_creation, put

HOLD = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(4)
"""


def test_a_driver_killed_while_it_makes_the_database(
    tmp_path: Path, cli: Callable[..., Any], count_runs: Callable[..., Any]
) -> None:
    """`tests/proofs/faults/test_database_killed.py` has 20 moments."""
    put(tmp_path, "erm")
    kill_in_creation(tmp_path, 400_000)
    assert not (tmp_path / "mlflow.db").exists()
    done = cli("sync", "--directory", str(tmp_path))
    assert (done.code, done.err) == (0, "")
    assert count_runs(tmp_path)["study", "FINISHED", "active"] == 1
    assert [path.name for path in tmp_path.glob("mlflow.db*")] == ["mlflow.db"]


def test_the_tables_that_come_with_oodbench_are_those_that_mlflow_makes(tmp_path: Path) -> None:
    if version("mlflow") not in database.SCHEMA.read_text().partition("\n")[0]:
        pytest.skip("this is not the version of MLflow that oodbench is tested with")
    database.migrate(tmp_path / "mlflow.db")
    made = database.describe(tmp_path / "mlflow.db")
    assert unordered(made) == unordered(database.SCHEMA.read_text()), "python -m oodbench.record.database makes it anew"


def unordered(schema: str) -> list[str]:
    """MLflow makes indices and constraints in an order that differs from time to time."""
    return sorted(line.strip().rstrip(",") for line in schema.splitlines())


def test_another_version_of_mlflow_makes_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "version", lambda package: "2.0")
    monkeypatch.setattr(database, "migrate", lambda path: path.write_text("made by MLflow"))
    database.ensure_database(tmp_path / "mlflow.db")
    assert (tmp_path / "mlflow.db").read_text() == "made by MLflow"


def half_made(path: Path, template: Path) -> None:
    """As a process leaves it that is killed within a migration: tables of a later one, and the number of an earlier."""
    path.write_bytes(template.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
        connection.execute("DROP TABLE webhooks")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole")
    _ = Record(None, directory).client
    return directory / "mlflow.db"


def test_a_half_made_database_is_made_again_if_it_holds_no_run(
    template: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    half_made(tmp_path / "mlflow.db", template)
    put(tmp_path, "erm")
    done = cli("sync", "--directory", str(tmp_path))
    assert done.code == 0, done.err
    notice, rest = done.err.splitlines()
    assert notice == (f"notice: the record {tmp_path}/mlflow.db was left half-made and holds no run: it is made again.")
    assert rest == "Nothing is lost."
    assert cli("sync", "--directory", str(tmp_path)).err == ""
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "mlflow.db").touch()
    with pytest.warns(Notice, match="half-made"):
        assert Record(None, tmp_path / "empty").dataset_ids() == []


@pytest.mark.parametrize("content", ["a run", "no database"])
def test_a_database_that_may_hold_runs_is_left_alone(template: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "mlflow.db"
    half_made(path, template)
    if content == "a run":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("INSERT INTO runs (run_uuid) VALUES ('a')")
    else:
        path.write_bytes(b"something else" * 100)
    with pytest.raises(Unreachable, match="does not work") as raised:
        _ = Record(None, tmp_path).client
    assert str(raised.value).count("\n") == 1
    if content == "a run":
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT run_uuid FROM runs").fetchall() == [("a",)]
    else:
        assert path.read_bytes() == b"something else" * 100


def test_waiting_for_another_driver_is_said(template: Path, cli: Callable[..., Any]) -> None:
    directory = template.parent
    put(directory, "erm")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory / "mlflow.lock")], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    done = cli("sync", "--directory", str(directory))
    assert holder.wait() == 0
    assert done.code == 0
    assert done.err == f"notice: waiting for another driver that writes to sqlite:///{template}\n"


def test_many_writes_leave_a_plain_database(tmp_path: Path) -> None:
    """Their log is merged, also after an error; a reader who stays only keeps it there."""
    store = Record(None, tmp_path)
    experiment = store.ensure_experiment("e", {})

    def modes() -> tuple[str, int]:
        with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone()
            return mode, runs

    def write_and_stop() -> None:
        with store.many_writes():
            store.create_run(experiment, "first", {}, 1)
            assert modes() == ("wal", 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_stop()
    assert modes() == ("delete", 1)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as reader:
        with store.many_writes():
            reader.execute("SELECT count(*) FROM runs").fetchone()
            store.create_run(experiment, "second", {}, 2)
        assert modes() == ("wal", 2)
    with store.many_writes():
        pass
    assert modes() == ("delete", 2)
    assert not list(tmp_path.glob("*-wal"))


def test_a_delivery_does_not_wait_for_connections_of_its_own(tmp_path: Path) -> None:
    store = Record(None, tmp_path)
    first, second = put(tmp_path, "a", "b")
    deliver(store, first)
    started = time.monotonic()
    deliver(store, second)
    assert time.monotonic() - started < 4  # SQLite would wait for 5
