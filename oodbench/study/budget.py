"""The budget that every method of a run gets."""

from __future__ import annotations

from dataclasses import dataclass

from oodbench.settings.duration import duration_text


@dataclass(frozen=True)
class Budget:
    """What every method of a run gets: so many configurations, each on so many seeds, and how they are found."""

    trials: int = 20
    seeds: int = 10
    seed: int = 0  # of the search; the data's seeds are seed, seed + 1, ...
    repeat: int = 0  # another search on the same data: other configurations, other chance in training
    search: str = "random"  # who proposes configurations
    scheduler: str = "none"  # who stops trainings early
    seconds: float | None = None  # after which no configuration is begun

    @property
    def drawn_up_front(self) -> bool:
        """Whether all trials are known before the first one runs, and can be packed as is fastest."""
        return not self.deviations

    @property
    def deviations(self) -> list[str]:
        """In what it differs from a random search of all trials."""
        parts = [] if self.search == "random" else [f"search={self.search}"]
        parts += [] if self.scheduler == "none" else [f"scheduler={self.scheduler}"]
        return parts + ([] if self.seconds is None else [f"budget={duration_text(self.seconds)}"])
