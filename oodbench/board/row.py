"""The rows of a leaderboard and their cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from oodbench.board.choice import Pick
from oodbench.board.standing import Side
from oodbench.board.statistics import Interval
from oodbench.study.record import Granted, Ledger

Mark = Literal["best", "tied", ""]


@dataclass(frozen=True)
class Published:
    """What others found, and their ±."""

    value: float
    spread: float | None


@dataclass(frozen=True)
class Cell:
    """A metric of a method: mean and spread (sample std) over seeds, and how it stands among the others."""

    value: float | None
    spread: float | None
    mark: Mark = ""
    published: Published | None = None
    tier: int | None = None
    side: Side | None = None  # against the method that the board is against
    missing: int = 0  # how many more seeds or environments a test needs
    intervals: Mapping[str, Interval] = field(default_factory=dict)  # by what is drawn anew: seeds, environments, both
    search_spread: float | None = None  # sample std over repeats of the whole search
    worse_than: tuple[str, ...] = ()  # labels of methods that it is significantly worse than, all pairs one family
    price: float | None = None  # what the choice on validation data loses against the oracle's
    without_seed: float | None = None  # the mean, where each seed has the configuration that the others choose

    @property
    def within(self) -> bool | None:
        """Whether the value is within the published ±; None where there is nothing to compare."""
        if self.value is None or self.published is None or self.published.spread is None:
            return None
        return abs(self.value - self.published.value) <= self.published.spread

    def as_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "value": self.value,
            "spread": self.spread,
            "mark": self.mark,
            "tier": self.tier,
            "against": self.side,
            "worse_than": list(self.worse_than),
            "more_needed": self.missing,
            "intervals": {name: list(interval) for name, interval in self.intervals.items()},
            "search_spread": self.search_spread,
            "price_of_selection": self.price,
            "seed_left_out": self.without_seed,
        }
        if self.published is not None:
            values["published"] = {
                "value": self.published.value,
                "spread": self.published.spread,
                "within": self.within,
            }
        return values


@dataclass(frozen=True)
class Row:
    label: str
    cells: dict[str, Cell]
    trials: int
    seeds: int
    failed_trainings: int
    information: str
    run_id: str
    failure: str = ""  # why there are no values
    ledger: Ledger = field(default_factory=Ledger)
    budget: Granted | None = None  # what it was granted; None where it was not run
    unequal: str = ""  # in what its terms differ from those of the others: it is marked, and in no tier
    reference: bool = False  # shown, and ranked with nothing
    collapsed: bool = False  # onto a reference that was told nothing
    searches: int = 1  # how often the whole search was done; the values are the first one's
    results: tuple[Mapping[str, Any], ...] = ()  # scores and metrics per seed and test environment
    missing: Mapping[str, str] = field(default_factory=dict)  # by metric of an environment, why cells have no value
    picks: Mapping[str, Pick] = field(default_factory=dict)  # by selector, what it would have chosen
    validation: Cell = Cell(None, None)  # the mean error of the chosen configuration over validation environments

    def terms(self) -> dict[str, Any]:
        """What the figures rest on."""
        names = ("trials", "seeds", "failed_trainings", "information", "failure", "unequal", "reference", "collapsed")
        return {name: getattr(self, name) for name in names}

    @property
    def shown_label(self) -> str:
        """With a mark for what a reader must know of the row."""
        return self.label + (" ‡" if self.reference else " =‡" if self.collapsed else "")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "method": self.label,
            "metrics": {name: cell.as_dict() for name, cell in self.cells.items()},
            "validation_error": {"value": self.validation.value, "spread": self.validation.spread},
            **self.terms(),
            "ledger": self.costs(),
            "run_id": self.run_id,
            "searches": self.searches,
            "missing": dict(self.missing),
            "selectors": {name: pick.as_dict() for name, pick in self.picks.items()},
            "results": [dict(score) for score in self.results],
        }

    def costs(self) -> dict[str, Any]:
        """What was granted and what was spent, as plain values."""
        budget, ledger = self.budget, self.ledger
        return {
            "trials_granted": budget.trials if budget else 0,
            "search": budget.search if budget else "",
            "scheduler": budget.scheduler if budget else "",
            "budget_seconds": budget.seconds if budget else None,
            "rungs": [asdict(rung) for rung in ledger.rungs],
            "trainings": ledger.trainings,
            "gradient_steps": ledger.gradient_steps,
            "row_visits": ledger.row_visits,
            "seconds": ledger.seconds,
            "device": ledger.device,
        }
