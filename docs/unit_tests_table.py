"""Our figures of the linear unit tests beside the published ones, cell by cell, as the committed boards have them.

python docs/unit_tests_table.py [FOLDER]

Writes Markdown for leaderboards/unit_tests/README.md. A cell holds if our mean is within the published ±, or within two
standard errors of ours where the published ± is 0 or missing.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "leaderboards" / "unit_tests" / "published"
BOARDS = ("regression", "regression_scrambled", "classes", "classes_scrambled")
METHODS = {
    "erm": "ERM",
    "irm": "IRMv1",
    "iga": "IGA",
    "and_mask": "ANDMask",
    "ib_erm": "IB-ERM",
    "ib_irm": "IB-IRM",
    "oracle": "oracle",
}
REFERENCE = "oracle"  # beside the six methods that count


@dataclass(frozen=True)
class Compared:
    problem: str  # 1, 1s, 2, 2s, 3 or 3s
    method: str
    value: float
    spread: float
    seeds: int
    published: float
    published_spread: float | None

    @property
    def allowed(self) -> float:
        return self.published_spread or 2 * self.spread / math.sqrt(self.seeds)

    @property
    def holds(self) -> bool:
        return abs(self.value - self.published) <= self.allowed


def compared(folder: Path = FOLDER) -> list[Compared]:
    """Every cell that has both figures, by problem."""
    cells = [cell for board in BOARDS for cell in _of_board(folder / f"{board}.csv")]
    return sorted(cells, key=lambda cell: cell.problem)


def _of_board(path: Path) -> Iterator[Compared]:
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if not row["mean_error_published"] or not row["mean_error"]:
                continue
            settings = dict(word.split("=") for word in row["dataset_id"].split()[1:])
            scrambled = settings.get("scrambled", "false").lower() == "true"
            spread = row["mean_error_published_spread"]
            yield Compared(
                problem=settings.get("example", "1") + "s" * scrambled,
                method=row["method"].partition(" ")[0],
                value=float(row["mean_error"]),
                spread=float(row["mean_error_spread"]),
                seeds=int(row["seeds"]),
                published=float(row["mean_error_published"]),
                published_spread=float(spread) if spread else None,
            )


def table(cells: list[Compared]) -> str:
    """A line for each problem; ours above, the published figure below."""
    of = {(cell.problem, cell.method): cell for cell in cells}
    lines = ["| | " + " | ".join(METHODS.values()) + " |", "|---" * (len(METHODS) + 1) + "|"]
    for problem in dict.fromkeys(cell.problem for cell in cells):
        shown = [_text(of[problem, method]) if (problem, method) in of else "–" for method in METHODS]
        lines.append(f"| {problem} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _text(cell: Compared) -> str:
    ours = f"{cell.value:.3f}±{cell.spread:.3f}"
    theirs = f"{cell.published:.3f}" + (f"±{cell.published_spread:.3f}" if cell.published_spread else "")
    return f"{ours} {'✓' if cell.holds else '✗'}<br>{theirs}"


def count(cells: list[Compared]) -> str:
    ranked = [cell for cell in cells if cell.method != REFERENCE]
    reference = [cell for cell in cells if cell.method == REFERENCE]
    return (
        f"{sum(cell.holds for cell in ranked)} of {len(ranked)} cells hold, "
        f"and {sum(cell.holds for cell in reference)} of {len(reference)} of the oracle."
    )


if __name__ == "__main__":
    found = compared(Path(sys.argv[1]) if sys.argv[1:] else FOLDER)
    print(count(found), table(found), sep="\n\n")
