"""Many runs into the embedded database: MLflow commits seven times a run, and each commit waits for the disk.

While they are written, commits go to a log beside the database, and the disk is waited for at the end. A process that
is killed meanwhile loses nothing. After a power failure the last runs may be missing, and the parcel is still there.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy.pool import ConnectionPoolEntry

READERS_SECONDS = 1  # that another process which reads is waited for


class QuickWrites:
    """Knows the connections that MLflow opens to a database file from now on."""

    def __init__(self, path: Path) -> None:
        from sqlalchemy import Engine, event

        self._path = str(path)
        self._pooled: list[ConnectionPoolEntry] = []
        self._quick = False
        event.listen(Engine, "connect", self._add)

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
        """Call it while nobody else writes. Where another process reads, it is slower, or the log stays for a while."""
        own = None
        with contextlib.suppress(sqlite3.OperationalError):
            own = sqlite3.connect(self._path, timeout=READERS_SECONDS)
        if own is None:
            yield
            return
        self._reconnect()
        with contextlib.closing(own):
            _try(own, "journal_mode = wal")
            self._quick = True
            try:
                yield
            finally:
                self._quick = False
                self._reconnect()  # before: what MLflow keeps open reads, and would be waited for
                _try(own, "wal_checkpoint(passive)")
                _try(own, "journal_mode = delete")

    def _add(self, connection: Any, pooled: ConnectionPoolEntry) -> None:
        if not isinstance(connection, sqlite3.Connection):
            return
        (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
        if path == self._path:
            self._pooled.append(pooled)
            if self._quick:
                connection.execute("PRAGMA synchronous = normal")

    def _reconnect(self) -> None:
        """What MLflow asks next goes through new connections."""
        for pooled in self._pooled:
            if pooled.dbapi_connection is not None:
                pooled.invalidate()
        self._pooled.clear()


def _try(connection: sqlite3.Connection, pragma: str) -> None:
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute(f"PRAGMA {pragma}").fetchall()
