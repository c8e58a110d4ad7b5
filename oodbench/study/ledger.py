"""The ledger of a study: what it was granted and what it spent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ledger:
    trials_granted: int = 0
    search: str = "random"
    scheduler: str = "none"
    budget_seconds: float | None = None  # granted
    trainings: int = 0
    gradient_steps: int = 0
    row_visits: int = 0
    seconds: float = 0.0
    device: str = ""
