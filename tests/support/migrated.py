"""MLflow makes a new database by some forty migrations, a second of work: here they run once, and are copied."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any


def share_migrations(template: Path) -> None:
    """From now on, empty databases in files become copies of the first that this or another process has migrated."""
    from mlflow.store.db import utils

    migrate = utils._initialize_tables

    def initialize(engine: Any) -> None:
        file = engine.url.database if engine.dialect.name == "sqlite" else None
        if not file or file == ":memory:" or not utils._is_empty_database(engine):
            migrate(engine)
        elif template.exists():
            _copy(template, file)
        else:
            migrate(engine)
            made = template.with_name(f"{template.name}.{os.getpid()}")
            _copy(file, made)
            made.replace(template)

    utils._initialize_tables = initialize


def _copy(source: str | Path, target: str | Path) -> None:
    with contextlib.closing(sqlite3.connect(source)) as one, contextlib.closing(sqlite3.connect(target)) as other:
        one.backup(other)
