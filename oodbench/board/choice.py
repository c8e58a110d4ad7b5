"""What other choices than a study's own come to: pure functions of rows that were opened after it was written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oodbench.errors import OodbenchError
from oodbench.plugin.registry import plugins
from oodbench.plugin.selector import ESTIMATED, part_of
from oodbench.study.record import OPENED, Chosen, ConcludedStudy
from oodbench.study.selectors import find_selector, select

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.plugin.selector import Selector

ORACLE = "oracle"
PerSeed = Callable[["pd.DataFrame"], "pd.DataFrame"]
"""From result rows to the metrics of a board, a row per seed."""


@dataclass(frozen=True)
class Pick:
    """What a selector chooses among the trainings of a study, and what that comes to on test."""

    selector: str
    configuration: int  # where each seed has its own, that of most seeds
    values: Mapping[str, float]  # by metric of the board, mean over seeds
    correlation: float | None  # of ranks: its scores and the mean test error, over the configurations

    def as_dict(self) -> dict[str, object]:
        return {"configuration": self.configuration, "metrics": dict(self.values), "rank_correlation": self.correlation}


def as_chosen(results: pd.DataFrame, configurations: Mapping[int, int]) -> pd.DataFrame | None:
    """Test rows as if each seed had this configuration; None where not all of them were opened."""
    tested = results[results["part"].isin(["test", OPENED])]
    own = tested[tested["configuration"] == tested["seed"].map(configurations)]
    whole = results["chosen"] & (results["part"] == "test")
    return own.assign(part="test", chosen=True) if len(own) == whole.sum() else None


def without_seeds(study: ConcludedStudy, per_seed: PerSeed) -> pd.DataFrame | None:
    """The metrics of each seed with the configuration that the other seeds choose; None where nothing tells."""
    choice, results = study.record.choice, study.results
    if choice is None or results is None or not choice.without_seed:
        return None
    rows = as_chosen(results, choice.without_seed)
    return None if rows is None else per_seed(rows)


def picks_of(study: ConcludedStudy, per_seed: PerSeed) -> dict[str, Pick]:
    """By selector, what `choices_of` has."""
    results = study.results
    if results is None:
        return {}
    errors = errors_on_test(results)
    picks: dict[str, Pick] = {}
    for name, choice in choices_of(study).items():
        rows = as_chosen(results, {seed: choice.of_seed(seed) for seed in results["seed"].unique()})
        if rows is not None:
            means = per_seed(rows).mean()
            values = {str(metric): float(value) for metric, value in means.items() if math.isfinite(value)}
            picks[name] = Pick(name, choice.configuration, values, rank_correlation(choice.scores, errors))
    return picks


def errors_on_test(results: pd.DataFrame) -> dict[int, float]:
    """Of every configuration that was opened: the mean over test environments and seeds."""
    tested = results[results["part"].isin(["test", OPENED])]
    by_seed = tested.groupby(["configuration", "seed"])["error"].mean().groupby("configuration").agg(["mean", "count"])
    whole = by_seed[by_seed["count"] == tested["seed"].nunique()]["mean"]
    return {int(str(number)): float(value) for number, value in whole.items()}


def rank_correlation(scores: Mapping[int, float], errors: Mapping[int, float]) -> float | None:
    """Spearman's; None where there is no order to compare."""
    import pandas as pd

    both = pd.DataFrame({"score": pd.Series(scores, dtype=float), "error": pd.Series(errors, dtype=float)}).dropna()
    ranks = both.rank()
    if len(ranks) < 2 or (ranks.nunique() < 2).any():
        return None
    return float(ranks["score"].corr(ranks["error"]))


def choices_of(study: ConcludedStudy) -> dict[str, Chosen]:
    """By selector: the study's own, all others that can be told from the same trainings, and the oracle. None unless
    all configurations were opened."""
    record, results = study.record, study.results
    if results is None or record.choice is None or record.opening is None or not record.opening.opened_all:
        return {}
    tested = results[results["part"].isin(["test", OPENED])]
    opened = set(errors_on_test(results))
    choices = {record.selector: record.choice}
    for plugin in plugins("selector"):
        if plugin.name in choices or plugin.cls is None:
            continue
        selector = find_selector(plugin.name)
        if part_of(selector) == ESTIMATED:  # what is there is another one's estimate
            continue
        rows = tested if plugin.name == ORACLE else _rows_for(selector, results)
        if rows is None:
            continue
        rows = rows[rows["configuration"].isin(opened)]
        try:
            choices[plugin.name] = select(rows, plugin.name, record.budget.seeds, record.configurations, record.choose)
        except OodbenchError:  # no configuration has what it goes by
            continue
    return choices


def _rows_for(selector: Selector, results: pd.DataFrame) -> pd.DataFrame | None:
    """What the selector goes by, where the study has it of every model."""
    rows = results[results["part"] == part_of(selector)]
    if selector.needs_stability or selector.metric not in rows or rows[selector.metric].isna().all():
        return None
    return rows
