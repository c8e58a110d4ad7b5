"""Selectors: how a study's configuration is chosen, from validation scores unless it says oracle."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from oodbench.errors import StudyFailed, UnknownName

if TYPE_CHECKING:
    import pandas as pd

SELECTORS = {
    "mean": "mean error over the validation environments",
    "worst": "largest error among the validation environments",
    "oracle": "mean error over the TEST environments: an upper bound, never a fair result",
}


@dataclass(frozen=True)
class Selection:
    """The chosen configuration and what it was chosen from."""

    selector: str
    configuration: int
    score: float
    scores: dict[int, float]  # configuration -> mean over seeds; only those that finished on every seed

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_selector(name: str) -> str:
    if name not in SELECTORS:
        raise UnknownName("selector", name, SELECTORS)
    return name


def select(scores: pd.DataFrame, selector: str, seeds: int) -> Selection:
    """The configuration with the smallest score, averaged over seeds, among those that finished on every seed.

    `scores` has a row per configuration, seed and environment: of the validation part, or for the oracle of test.
    Ties go to the smaller number, and so to the defaults.
    """
    if scores.empty:
        raise StudyFailed("no training finished")
    by_configuration = score_configurations(scores, selector)
    complete = by_configuration[by_configuration["count"] == seeds]["mean"]
    if complete.empty:
        raise StudyFailed(f"no configuration finished on all {seeds} seeds")
    table = dict(zip(complete.index.astype(int).tolist(), complete.astype(float).tolist(), strict=True))
    chosen = min(table, key=lambda configuration: (table[configuration], configuration))
    return Selection(selector, chosen, table[chosen], table)


def score_configurations(scores: pd.DataFrame, selector: str) -> pd.DataFrame:
    """What the selector says of each configuration: its mean over seeds, and the count of seeds."""
    by_seed = scores.groupby(["configuration", "seed"])["error"].agg("max" if selector == "worst" else "mean")
    return by_seed.groupby("configuration").agg(["mean", "count"])
