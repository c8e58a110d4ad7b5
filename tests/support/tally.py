"""What became of the commands of the documents."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    ran: Counter[str] = field(default_factory=Counter)  # kind -> how many
    not_run: dict[str, str] = field(default_factory=dict)  # command -> why
    used: set[str] = field(default_factory=set)  # entries of the tables of exceptions


TALLY = Tally()
