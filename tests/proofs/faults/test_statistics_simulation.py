"""The long simulation: errors stay at their level, and docs/statistics.md shows what it found."""

from __future__ import annotations

import runpy
from typing import Any

import numpy as np
import pytest

from oodbench.board.statistics import LEVEL
from places import ROOT

DOCS = ROOT / "docs"
REPETITIONS = 4000
TABLES = dict[str, list[list[str]]]


@pytest.fixture(scope="module")
def simulation() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "simulate_statistics.py"))


@pytest.fixture(scope="module")
def tables(simulation: dict[str, Any]) -> TABLES:
    made: TABLES = simulation["tables"](REPETITIONS)
    for name, rows in made.items():
        print(f"\n{name}")
        for row in rows:
            print("  ".join(cell.rjust(18) for cell in row))
    return made


def test_the_family_wise_error_stays_at_its_level(tables: TABLES) -> None:
    noise = 3 * np.sqrt(LEVEL * (1 - LEVEL) / REPETITIONS)
    for world, methods, over_seeds, over_environments, cells in tables["errors"][1:]:
        assert float(over_seeds) <= LEVEL + noise, (world, methods)
        assert float(over_environments) <= LEVEL + noise, (world, methods)
        if "luck" in world or "all" in world.split():
            assert float(cells) > 0.2, (world, methods)


def test_power_grows_with_the_effect_and_with_seeds(tables: TABLES) -> None:
    found = {
        (row[0], int(row[1])): [float(cell) for cell in row[2:]] for row in tables["power"][1:] if row[2] != "too few"
    }
    for powers in found.values():
        assert powers == sorted(powers)
    for (methods, seeds), powers in found.items():
        if seeds == 10 and (methods, 20) in found:
            assert all(more >= less for less, more in zip(powers, found[methods, 20], strict=True))


def test_intervals_of_normal_values_hold_what_they_promise(tables: TABLES) -> None:
    for units, normal, _ in tables["coverage"][1:]:
        assert float(normal) >= (0.90 if int(units) < 10 else 0.93), units
    for _, share in tables["crossed"][1:]:
        assert float(share) >= 0.93


def test_the_page_shows_these_tables(simulation: dict[str, Any], tables: TABLES) -> None:
    page = (DOCS / "statistics.md").read_text(encoding="utf-8")
    assert simulation["write_into"](page, tables) == page, "run `python docs/simulate_statistics.py`"
