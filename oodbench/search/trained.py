"""Trainings of concluded studies, kept for searches that have the same ones: with more trials, or another selector.

A trial comes to the same bits in any pack, so that 20 configurations trained yesterday and 20 trained today are a
search of 40. What is kept is a cache: the searches used longest ago go first, and without it all is trained anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from oodbench.search.ownership import foreign_folder, read_own
from oodbench.settings.space import Value
from oodbench.study.directory import make_folder, write_atomically
from oodbench.study.document import Damaged, OtherSchema, read_document, write_document
from oodbench.study.study import Study

SCHEMA = 1
MOST_BYTES = 2**30
DIVISION_FILE = "division.json"


@dataclass(frozen=True)
class Division:
    """How the packs of a folder came about: those of the first searches, one after another, are its first packs."""

    schema: int
    ends: tuple[int, ...]  # how many configurations each search had, the last one included
    configurations: tuple[Mapping[str, Value], ...]


class Trained:
    """The trainings that are kept of a search, however many trials it had."""

    def __init__(self, directory: Path, study: Study) -> None:
        self.folder = directory / "trained" / study.extendable_id
        self.study = study

    def lend(self, folder: Path) -> Study:
        """The study with the packs that are kept, now in its own folder, unless it is further already."""
        own, kept = self._division(folder), self._division(self.folder)
        if own is None and kept is not None and not any(folder.glob("pack-*")):
            try:
                self._link(folder, kept)
            except OSError:  # another run took the place of it meanwhile, or the folder cannot have links
                shutil.rmtree(folder, ignore_errors=True)
            own = self._division(folder)
        return self.study if own is None else replace(self.study, extends=_inner(own.ends, self.study))

    def receive(self, study: Study, folder: Path) -> None:
        """The packs of a concluded study take the place of fewer."""
        kept = self._division(self.folder)
        if kept is not None and kept.ends[-1] >= len(study.configurations):
            with suppress(OSError):
                os.utime(self.folder)
            return
        ends = (*study.extends, len(study.configurations))
        with suppress(OSError):  # it is a cache
            write_atomically(
                folder / DIVISION_FILE, write_document(Division(SCHEMA, ends, tuple(study.configurations)))
            )
            make_folder(self.folder.parent, 0o700)
            shutil.rmtree(self.folder, ignore_errors=True)
            folder.rename(self.folder)
            os.utime(self.folder)
            self._make_room()

    def _division(self, folder: Path) -> Division | None:
        """Of a folder that has one, whose configurations are the beginning of the study's."""
        try:
            ours, content = read_own(folder / DIVISION_FILE)
            if not ours or foreign_folder(folder) is not None:
                return None
            division = read_document(Division, content, SCHEMA)
        except (OSError, Damaged, OtherSchema):
            return None
        configurations = [dict(hparams) for hparams in division.configurations]
        return division if configurations == self.study.configurations[: len(configurations)] else None

    def _link(self, folder: Path, kept: Division) -> None:
        """The division goes last: with it, the packs are whole."""
        make_folder(folder, 0o700)
        for path in self.folder.glob("pack-*.pickle"):
            os.link(path, folder / path.name)
        write_atomically(folder / DIVISION_FILE, write_document(kept))
        os.utime(self.folder)

    def _make_room(self) -> None:
        searches = sorted(self.folder.parent.iterdir(), key=lambda place: place.stat().st_mtime, reverse=True)
        total = 0
        for place in searches:
            total += sum(path.stat().st_size for path in place.iterdir())
            if total > MOST_BYTES:
                shutil.rmtree(place, ignore_errors=True)


def _inner(ends: tuple[int, ...], study: Study) -> tuple[int, ...]:
    """Where its packs are divided, but for its own end."""
    return tuple(end for end in ends if end < len(study.configurations))
