"""Progress of a fetch in a terminal, or line by line in a log."""

from __future__ import annotations

import threading

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from oodbench.plugin.files import Transfer


class ConsoleTransfer(Transfer):
    """One bar for all files. Files whose size is not known yet count with the mean of the others."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar: Progress | None = None
        self.files = self.whole = 0
        self.sizes: dict[str, int] = {}
        self.lock = threading.Lock()  # files come in several threads

    def begin(self, files: int) -> None:
        self.files = files
        if self.console.is_terminal:
            self.bar = Progress(
                TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
                TextColumn("left"), TimeRemainingColumn(), console=self.console,
            )  # fmt: skip
            self.task = self.bar.add_task(self._description(), total=None)
            self.bar.start()

    def expect(self, name: str, size: int, there: int) -> None:
        with self.lock:
            self.sizes[name] = size
            if self.bar is not None:
                total = sum(self.sizes.values()) * self.files / len(self.sizes)
                self.bar.update(self.task, total=total, advance=there)

    def advance(self, name: str, size: int) -> None:
        if self.bar is not None:
            self.bar.update(self.task, advance=size)

    def note(self, text: str) -> None:
        self.console.print(f"[dim]{escape(text)}[/dim]", highlight=False, soft_wrap=True)

    def finish(self, name: str) -> None:
        with self.lock:
            self.whole += 1
            if self.bar is not None:
                self.bar.update(self.task, description=self._description())
            else:
                self.console.print(f"{self._description()}: {name}", highlight=False)

    def end(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _description(self) -> str:
        return f"{self.whole} of {self.files} files"
