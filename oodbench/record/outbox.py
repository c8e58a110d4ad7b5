"""Concluded studies on their way to the record: each a folder with all that the record will have, written at once.

A study goes from its packs into the outbox, and from there into the record. Each step is repeated until it is done:
what a killed driver or a server that was away interrupted, the next run or `oodbench sync` completes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from oodbench.errors import Notice
from oodbench.record.artifacts import write_artifacts
from oodbench.record.parcel import SLIP_FILE, Parcel, artifacts_in, read_parcel
from oodbench.study.directory import study_folder
from oodbench.study.document import Damaged, OtherSchema, write_document
from oodbench.study.outcome import Outcome


def _give_notice(id: str, reason: str) -> None:
    warnings.warn(f"parcel {id} is left out: {reason}", Notice, stacklevel=3)


class Outbox:
    """Under `directory`. Whoever puts or removes a parcel holds the lock of its study."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.folder = directory / "outbox"
        self.damaged = directory / "damaged"  # what was set aside

    def put(self, outcome: Outcome, destination: str, fresh: bool) -> Parcel:
        """All of it on disk, or nothing."""
        study_id = outcome.record.study_id
        id = f"{study_id}-{uuid.uuid4().hex[:8]}"
        partial = study_folder(self.directory, study_id) / "parcel"
        shutil.rmtree(partial, ignore_errors=True)
        parcel = Parcel(id, destination, fresh, outcome.record, outcome.results, self.folder / id)
        try:
            artifacts_in(partial).mkdir(parents=True)
            write_artifacts(outcome, artifacts_in(partial))
            (partial / SLIP_FILE).write_bytes(write_document(parcel.slip))
            _settle(partial)
            self.folder.mkdir(exist_ok=True)
            partial.rename(parcel.folder)
        except OSError:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return parcel

    def parcels(self, leave_out: Callable[[str, str], None] = _give_notice) -> list[Parcel]:
        """The oldest first. `leave_out` is told the name of one that cannot be read, and the reason.

        A damaged one is set aside; one that another version of oodbench wrote stays for that version.
        """
        parcels = []
        for folder in sorted(self.folder.iterdir()) if self.folder.is_dir() else []:
            try:
                parcels.append(read_parcel(folder))
            except OtherSchema as error:
                leave_out(folder.name, f"another version of oodbench wrote it: {error}.\n"
                          f"Deliver it with `oodbench sync` of that version, or remove {folder}.")  # fmt: skip
            except (Damaged, OSError) as error:
                if folder.is_dir():  # otherwise another driver delivered it just now
                    leave_out(folder.name, self._set_aside(folder, str(error)))
        return sorted(parcels, key=lambda parcel: (parcel.concluded, parcel.id))

    def remove(self, parcel: Parcel) -> None:
        """With what is left of the study's packs."""
        aside = study_folder(self.directory, parcel.study_id)
        aside.mkdir(parents=True, exist_ok=True)
        parcel.folder.rename(aside / parcel.id)  # from here on it is no parcel, even if we are killed
        shutil.rmtree(aside, ignore_errors=True)

    def _set_aside(self, folder: Path, reason: str) -> str:
        """Out of the way of others, with the reason beside it."""
        where = self.damaged / folder.name
        with contextlib.suppress(OSError):  # it stays where it is, and is left out the next time, too
            self.damaged.mkdir(exist_ok=True)
            folder.rename(where)
            (where / "reason.txt").write_text(reason + "\n", encoding="utf-8")
        where = where if where.is_dir() else folder
        return f"it is damaged: {reason}.\nIt is kept in {where}; the command of its study runs the study again."


def _settle(folder: Path) -> None:
    """Wait until the disk has the files: a name must not appear before its contents."""
    for path in _below(folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _below(folder: Path) -> Iterator[Path]:
    yield from folder.rglob("*")
    yield folder
