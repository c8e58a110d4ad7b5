"""The README of the linear unit tests says what the committed boards have, and they have the published figures."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "leaderboards" / "unit_tests"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "unit_tests_table.py"))


def test_readme_has_the_table_of_the_boards(script: dict[str, Any]) -> None:
    cells = script["compared"]()
    readme = (FOLDER / "README.md").read_text()
    assert script["table"](cells) in readme
    assert script["count"](cells) in readme


def test_published_figures_are_those_of_the_suite(script: dict[str, Any]) -> None:
    with (ROOT / "oodbench" / "suite" / "shipped" / "unit_tests.csv").open(newline="") as file:
        expected = [
            (row["method"], float(row["value"]), float(row["spread"]) if row["spread"] else None)
            for row in csv.DictReader(file)
        ]
    found = [(cell.method, cell.published, cell.published_spread) for cell in script["compared"]()]
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("value", "spread", "published_spread", "holds"),
    [
        (1.4, 0.0, 0.5, True),
        (1.6, 9.0, 0.5, False),
        (1.9, 0.9, None, True),  # within two standard errors of four seeds
        (1.91, 0.9, None, False),
        (1.9, 0.9, 0.0, True),
    ],
)
def test_what_holds(
    script: dict[str, Any], value: float, spread: float, published_spread: float | None, holds: bool
) -> None:
    cell = script["Compared"]("1", "erm", value, spread, 4, 1.0, published_spread)
    assert cell.holds is holds
