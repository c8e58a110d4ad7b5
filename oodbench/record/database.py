"""The embedded database: made aside, whole, and then put in its place; one that was left half-made is made again.

MLflow makes a database by some forty migrations, seconds of work in which a process may be killed. What they come to is
in mlflow.sql, for the version of MLflow that it names: `python -m oodbench.record.database` writes it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.errors import Notice

if TYPE_CHECKING:
    from sqlalchemy import Engine

BUSY_SECONDS = 20
SCHEMA = Path(__file__).with_name("mlflow.sql")


def ensure_database(path: Path) -> None:
    """A whole database at `path`, if there can be one. Only for who has the record's lock."""
    if path.exists():
        if _holds_runs(path) or _is_whole(path):
            return
        warnings.warn(
            f"the record {path} was left half-made and holds no run: it is made again.\nNothing is lost.",
            Notice,
            stacklevel=2,
        )
    _make(path)


def _make(path: Path) -> None:
    aside = path.with_name(f"{path.name}.making")
    _remove(aside)  # of a process that was killed
    schema = SCHEMA.read_text()
    try:
        if schema.startswith(_headline()):
            _execute(schema, aside)
        else:
            migrate(aside)
        _settle(aside)
    except BaseException:
        _remove(aside)
        raise
    _remove_journals(path)  # of a half-made one: sqlite would roll the new one back with it
    aside.replace(path)
    _settle(path.parent)


def migrate(path: Path) -> None:
    """A new database, as MLflow makes it."""
    from mlflow.store.db import utils

    utils._initialize_tables(_engine(path))  # type: ignore[no-untyped-call]


def describe(path: Path) -> str:
    """The statements that make such a database."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        return "\n".join([_headline(), *database.iterdump(), ""])


def _headline() -> str:
    return f"-- the tables of MLflow {version('mlflow')}\n"


def _execute(schema: str, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(schema)


def _holds_runs(path: Path) -> bool:
    """Whether it has a run, or may have one: what cannot be read is not replaced."""
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            return "runs" in tables and database.execute("SELECT 1 FROM runs LIMIT 1").fetchone() is not None
    except sqlite3.Error:
        return True


def _is_whole(path: Path) -> bool:
    """Whether all migrations are done; asked only of a database without runs, for it takes a moment."""
    from mlflow.exceptions import MlflowException
    from mlflow.store.db import utils

    engine = _engine(path)
    try:
        utils._verify_schema(engine)  # type: ignore[no-untyped-call]
        return bool(utils._all_tables_exist(engine))  # type: ignore[no-untyped-call]
    except MlflowException:
        return False


def _engine(path: Path) -> Engine:
    """It keeps no connection: the file may be moved or replaced between two questions."""
    from sqlalchemy import NullPool, create_engine

    return create_engine(f"sqlite:///{path}", poolclass=NullPool)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    _remove_journals(path)


def _remove_journals(path: Path) -> None:
    for ending in ("-journal", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _settle(path: Path) -> None:
    """Wait until the disk has it: the name must not appear before its contents."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        migrate(Path(folder) / "mlflow.db")
        SCHEMA.write_text(describe(Path(folder) / "mlflow.db"))
