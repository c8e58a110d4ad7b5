"""Benchmarks compare two ways in one run and print the ratio; a ratio below its floor fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print past the capture: figures are what a benchmark is for."""

    def show(line: str) -> None:
        with capsys.disabled():
            print(f"\n  {line}")

    return show
