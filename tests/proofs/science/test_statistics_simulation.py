"""The long simulation: errors stay at their level, and docs/statistics.md shows what it found."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from places import ROOT

DOCS = ROOT / "docs"
REPETITIONS = 2000
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


def test_the_errors_of_every_family_stay_at_their_level(tables: TABLES) -> None:
    for world, methods, *found in tables["errors"][1:]:
        assert max(map(float, found)) <= 0.06, (world, methods, found)
    for world, *found in tables["cells"][1:]:
        if "luck" in world or "all" in world.split():
            assert min(map(float, found)) > 0.2, world


def test_skewed_differences_of_unequal_size_miss_the_level(tables: TABLES) -> None:
    """The page warns of them: if they held it, the warning would be wrong."""
    found = {(row[0], int(row[1])): float(row[2]) for row in tables["skewed"][1:]}
    for (world, methods), error in found.items():
        if world == "skewed luck of equal size":
            assert error <= 0.06, methods
    assert found["skewed luck of unequal size", 7] > 0.08
    assert found["a third of the methods fail on one seed in five", 20] > 0.2


def test_power_grows_with_the_effect_and_with_seeds(tables: TABLES) -> None:
    found = {(row[0], int(row[1])): [float(cell) for cell in row[2:]] for row in tables["power"][1:]}
    for powers in found.values():
        assert powers == sorted(powers)
    for (methods, seeds), powers in found.items():
        if (methods, 2 * seeds) in found:
            assert all(more >= less for less, more in zip(powers, found[methods, 2 * seeds], strict=True))
    assert found["20", 10][1] >= 0.25  # one standard deviation


def test_fewer_claims_find_more(tables: TABLES) -> None:
    for world, methods, pairs, against, best in tables["families"][1:]:
        assert float(pairs) < min(float(against), float(best)), (world, methods)


def test_intervals_of_normal_values_hold_what_they_promise(tables: TABLES) -> None:
    for units, normal, _ in tables["coverage"][1:]:
        assert float(normal) >= (0.90 if int(units) < 10 else 0.93), units
    for _, share in tables["crossed"][1:]:
        assert float(share) >= 0.93


def test_the_page_shows_these_tables(simulation: dict[str, Any], tables: TABLES) -> None:
    page = (DOCS / "statistics.md").read_text(encoding="utf-8")
    assert simulation["write_into"](page, tables) == page, "run `python docs/simulate_statistics.py`"
