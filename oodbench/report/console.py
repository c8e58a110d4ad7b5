"""Progress of a run in a terminal, or line by line in a log."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from oodbench.driver.progress import Progress
from oodbench.report.text import count_text, left_out_text, memory_text
from oodbench.study.halving import describe_rungs
from oodbench.study.memory import predict_memory
from oodbench.study.study import Study

QUIET = 60.0  # seconds without a line in a log, at most, while packs come back
SOON = 10.0  # seconds: before, the pace says little


class ConsoleProgress(Progress):
    """Draws on standard error, so that standard output holds results only."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar: Bar | None = None
        self.done = self.total = self.failed = self.shown = self.trained = 0
        self.started, self.searching = time.monotonic(), 0.0

    def plan(self, studies: Sequence[Study], record: str) -> None:
        first = studies[0]
        trials = sorted({study.budget.trials for study in studies})
        methods = ", ".join(dict.fromkeys(study.label for study in studies))
        settings = ", ".join(dict.fromkeys(study.dataset_id for study in studies))
        self.console.print(f"methods   {escape(methods)}", highlight=False)
        self.console.print(f"datasets  {escape(settings)}", highlight=False)
        for notice in dict.fromkeys(study.notice for study in studies if study.notice):
            self.console.print(
                f"[bold yellow]notice[/bold yellow]    {escape(notice)}", highlight=False, soft_wrap=True
            )
        left_out = (study.dataset.rows_left_out for study in studies)
        for text in dict.fromkeys(left_out_text(counts) for counts in left_out if counts):
            self.console.print(f"rows      {escape(text.removeprefix('rows '))}", highlight=False, soft_wrap=True)
        for warning in dict.fromkeys(warning for study in studies for warning in study.dataset.warnings):
            self.console.print(
                f"[bold yellow]warning[/bold yellow]   {escape(warning)}", highlight=False, soft_wrap=True
            )
        self.console.print(
            f"budget    {' to '.join(map(str, dict.fromkeys((trials[0], trials[-1]))))} trials × {first.budget.seeds} "
            f"seeds per method, selected by {first.selector}; "
            f"{sum(study.trainings for study in studies)} trainings on {first.setup.device}",
            highlight=False,
        )
        for text in _rungs(studies):
            self.console.print(f"halving   {escape(text)}", highlight=False, soft_wrap=True)
        searches = 1 + max(study.budget.repeat for study in studies)
        if searches > 1:
            self.console.print(f"repeats   {searches} searches on the same data", highlight=False)
        self.console.print(f"memory    {memory_text(predict_memory(studies))}", highlight=False, soft_wrap=True)
        self.console.print(f"record    {escape(record)}", highlight=False, soft_wrap=True)

    def stage(self, text: str) -> None:
        self.console.print(f"[dim]{escape(text)} …[/dim]")

    def note(self, text: str) -> None:
        self.console.print(f"[bold yellow]notice[/bold yellow]    {escape(text)}", highlight=False, soft_wrap=True)

    def begin(self, trainings: int, finished: int) -> None:
        self.done, self.total = finished, trainings
        self.begun = self.told = time.monotonic()
        if finished:
            self.console.print(f"[dim]{count_text(finished, 'training')} finished in an earlier run[/dim]")
        if self.console.is_terminal:
            self.bar = Bar(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("trainings"),
                TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=self.console,
            )  # fmt: skip
            self.task = self.bar.add_task("training", total=trainings, completed=finished)
            self.bar.start()

    def advance(self, study: Study, trainings: int, failed: int) -> None:
        self.done += trainings
        self.trained += trainings
        self.failed += failed
        tail = f" ({self.failed} failed)" if self.failed else ""
        if self.bar is not None:
            self.bar.update(self.task, advance=trainings, description=f"{study.method_name}{tail}")
        elif self.done * 10 // self.total > self.shown or time.monotonic() > self.told + QUIET:
            self.shown, self.told = self.done * 10 // self.total, time.monotonic()
            self.console.print(f"{self.done} of {self.total} trainings{tail}{self._time_left()}", highlight=False)

    def _time_left(self) -> str:
        """At the pace so far, where that is known and worth a word."""
        passed = time.monotonic() - self.begun
        left = passed / self.trained * (self.total - self.done)
        return f", about {_duration(left)} left" if left and passed > SOON else ""

    def end(self) -> None:
        self.searching = self.searching or time.monotonic() - self.begun
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def finish(self) -> None:
        rate = f"{self.trained / max(self.searching, 1e-9):.1f} per second"
        trained = (
            f"{count_text(self.trained, 'training')} in {_duration(self.searching)}, {rate}"
            if self.trained
            else "no trainings"
        )
        total = _duration(time.monotonic() - self.started)
        self.console.print(f"{trained}; {total} in total", highlight=False)


def _rungs(studies: Sequence[Study]) -> list[str]:
    """Of searches by halving: a line for all methods, or for each kind of methods."""
    methods: dict[str, dict[str, None]] = {}
    for study in studies:
        if study.rungs:
            text = describe_rungs((rung.trials, rung.steps) for rung in study.rungs)
            methods.setdefault(text, {})[study.method_name] = None
    return [text if len(methods) == 1 else f"{', '.join(own)}: {text}" for text, own in methods.items()]


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
