"""Progress in a log: how far a run is, and how long it will take."""

from __future__ import annotations

from io import StringIO
from typing import cast

import pytest
from rich.console import Console

from oodbench.report import console
from oodbench.study.study import Study


def test_a_log_says_how_far_it_is_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("oodbench.report.console.time.monotonic", lambda: clock[0])
    written = StringIO()
    progress = console.ConsoleProgress(Console(file=written, width=200))
    progress.begin(1100, 100)
    for at, trainings, failed in ((5, 100, 0), (20, 5, 0), (50, 95, 10), (100, 5, 0), (120, 5, 0), (260, 790, 0)):
        clock[0] = at
        progress.advance(cast(Study, None), trainings, failed)
    progress.end()
    assert written.getvalue().splitlines() == [
        "100 trainings finished in an earlier run",
        "200 of 1100 trainings",
        "300 of 1100 trainings (10 failed), about 3.3 min left",
        "310 of 1100 trainings (10 failed), about 7.5 min left",
        "1100 of 1100 trainings (10 failed)",
    ]
