"""Selectors: how a study's configuration is chosen, from validation scores unless it says oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from oodbench.errors import StudyFailed, UnknownName
from oodbench.settings.space import Value
from oodbench.study.record import SELECTORS, Chosen

if TYPE_CHECKING:
    import pandas as pd


def check_selector(name: str) -> str:
    if name not in SELECTORS:
        raise UnknownName("selector", name, SELECTORS)
    return name


def select(scores: pd.DataFrame, selector: str, seeds: int, configurations: Sequence[Mapping[str, Value]]) -> Chosen:
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
    return Chosen(selector, chosen, table[chosen], table, dict(configurations[chosen]))


def score_configurations(scores: pd.DataFrame, selector: str) -> pd.DataFrame:
    """What the selector says of each configuration: its mean over seeds, and the count of seeds."""
    by_seed = scores.groupby(["configuration", "seed"])["error"].agg("max" if selector == "worst" else "mean")
    return by_seed.groupby("configuration").agg(["mean", "count"])
