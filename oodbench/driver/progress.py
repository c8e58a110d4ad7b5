"""What a run tells about its progress. This one is silent; the command line has one that draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oodbench.study.study import Study


class Progress:
    def plan(self, studies: Sequence[Study], record: str) -> None:
        """The studies of the run and where their record goes, before anything starts."""

    def stage(self, text: str) -> None:
        """What is being done now."""

    def note(self, text: str) -> None:
        """Something the user should know, though the run goes on."""

    def begin(self, trainings: int, finished: int) -> None:
        """The search starts, with so many trainings in all, some of them finished by an earlier run."""

    def advance(self, study: Study, trainings: int, failed: int) -> None:
        """A pack of the study came back."""

    def end(self) -> None:
        """The search is over, however it ended."""

    def finish(self) -> None:
        """Everything is recorded, and the run is over."""
