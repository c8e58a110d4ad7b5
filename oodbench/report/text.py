"""Numbers as text, the same in every table, and tables of texts; what is absent has one sign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oodbench.board.row import Cell
from oodbench.study.memory import Memory
from oodbench.study.record import Ledger

ABSENT = "–"


@dataclass(frozen=True)
class Plain:
    """A table of texts, a row per method."""

    titles: list[str]
    rows: list[tuple[str, list[str]]]


def number_text(value: float | None, format: str = ".3f") -> str:
    return ABSENT if value is None else f"{value:{format}}"


def interval_text(interval: tuple[float, float] | None, format: str = ".3f") -> str:
    return ABSENT if interval is None else f"{interval[0]:{format}} to {interval[1]:{format}}"


def spread_text(value: float, spread: float | None) -> str:
    return f"{value:.3f}" + (f" ± {spread:.3f}" if spread is not None else "")


def cell_text(cell: Cell) -> str:
    return ABSENT if cell.value is None else spread_text(cell.value, cell.spread)


def memory_text(memory: Memory) -> str:
    """What a run takes at most, on each machine and in the temporary directory."""
    texts = [
        f"at most {size_text(memory.worker)} a worker, {size_text(memory.shared)} of it shared",
        f"{size_text(memory.store)} of rows in the object store",
    ]
    return "; ".join(texts + ([f"{size_text(memory.files)} in temporary files"] if memory.files else []))


def size_text(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6))} MB"


def left_out_text(counts: Mapping[str, int]) -> str:
    """Rows of the data that are not used, by the reason."""
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
    return f"rows left out: {sum(counts.values()):,} ({reasons})"


def count_text(count: int, noun: str, plural: str = "") -> str:
    """1 study, 2 studies."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def trials_text(trials: int, spent: Ledger) -> str:
    """How many configurations were begun, and of a search by halving how many were trained to the end."""
    return f"{trials} → {len(spent.rungs[-1].configurations)}" if len(spent.rungs) > 1 else f"{trials}"


def line(cells: list[str]) -> str:
    """A row of a Markdown table; the cells are Markdown."""
    return "| " + " | ".join(cells) + " |"
