"""The metrics of a leaderboard: results summed up over the environments of a seed. `scoring.py` and `meter.py` make the
results.

They are called by what is done over the test environments and by the metric there: mean_error, std_auc, worst_log_loss.
The worst error is called max_error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from oodbench.engine.data import TASKS
from oodbench.engine.scoring import SCORES
from oodbench.errors import UnknownName
from oodbench.plugin.registry import find, plugins
from oodbench.study.record import COEFFICIENTS

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.engine.data import Task

SUMMARY = {
    "regression": ("mean_error", "std_error", "max_error"),
    "classification": ("mean_error", "std_error", "max_error", "mean_accuracy", "mean_f1", "worst_f1"),
}
"""What a board shows unless others are asked for."""
BESIDES: dict[str, tuple[str, ...]] = {
    "regression": ("causal_error", "noncausal_error"),  # of coefficients, where the dataset knows the true ones
    "classification": ("train_accuracy",),
}
STABILITY = ("validation_stability", "test_stability", "max_test_stability", "ods", "max_ods")

Aggregate = Literal["mean", "std", "worst", ""]
AGGREGATES: tuple[Aggregate, ...] = ("mean", "std", "worst")
Weights = Literal["equal", "rows"]
WEIGHTS: tuple[Weights, ...] = ("equal", "rows")
WORST_ERROR = "max_error"


@dataclass(frozen=True)
class BoardMetric:
    """What a metric of a board is made of; without an aggregate, not of a value per test environment."""

    name: str
    aggregate: Aggregate
    column: str
    tasks: tuple[Task, ...]
    higher_is_better: bool


@cache
def board_metric(name: str) -> BoardMetric:
    """UnknownName where there is none of that name."""
    if name in STABILITY:
        return BoardMetric(name, "", name, TASKS, False)
    if name in BESIDES["classification"]:
        return BoardMetric(name, "", name, ("classification",), True)
    if name in BESIDES["regression"]:
        return BoardMetric(name, "", name, ("regression",), False)
    aggregate, metric = _split(name)
    if aggregate and metric in SCORES:
        tasks: tuple[Task, ...] = TASKS if metric == "error" else ("classification",)
        better = SCORES[metric]
    elif aggregate and metric in {plugin.name for plugin in plugins("metric")}:
        found = find("metric", metric)
        tasks, better = found.tasks, found.better
    else:
        raise UnknownName("metric", name, _known(TASKS))
    return BoardMetric(name, aggregate, metric, tasks, aggregate != "std" and better == "higher")


def check_metrics(names: Iterable[str], task: Task | None) -> tuple[str, ...]:
    """The names, each once. UnknownName where the task, if it is known, has none of that name."""
    for name in names:
        tasks = board_metric(name).tasks
        if task and task not in tasks:
            raise UnknownName(f"metric of a {task}", name, _known([task]))
    return tuple(dict.fromkeys(names))


def higher_is_better(name: str) -> bool:
    return board_metric(name).higher_is_better


def _split(name: str) -> tuple[Aggregate, str]:
    """The worst error has a name of its own, and no other."""
    if name == WORST_ERROR:
        return "worst", "error"
    for aggregate in AGGREGATES:
        if name.startswith(f"{aggregate}_") and name != "worst_error":
            return aggregate, name.removeprefix(f"{aggregate}_")
    return "", name


def _known(tasks: Iterable[Task]) -> list[str]:
    """Every metric of these tasks, but for those of stability, which have an option of their own."""
    known: list[str] = []
    for task in tasks:
        metrics = [plugin.name for plugin in plugins("metric") if plugin.cls is not None and task in plugin.cls.tasks]
        scores = [name for name in SCORES if task == "classification" or name == "error"]
        known += [f"{aggregate}_{metric}" for metric in (*scores, *metrics) for aggregate in AGGREGATES]
        known += BESIDES[task]
    return sorted({WORST_ERROR if name == "worst_error" else name for name in known})


def summarize(
    results: pd.DataFrame, task: Task, metrics: Iterable[str] = (), weights: Weights = "equal"
) -> pd.DataFrame:
    """Per seed, of the chosen configuration: the usual metrics of the task and those that are asked for.

    Means are over the test environments, which count equally or by their rows. The std (ddof 1) over a single
    environment is not a number, and is left so; and so is a metric that has no value in one of them.
    """
    import pandas as pd

    results = results[results["chosen"]]
    metrics = tuple(metrics)
    test = results[results["part"] == "test"]
    wanted = [board_metric(name) for name in dict.fromkeys([*SUMMARY[task], *metrics])]
    summary = pd.DataFrame(
        {metric.name: _over_environments(test, metric, weights) for metric in wanted if metric.aggregate}
    )
    if task == "classification":
        train = results[results["part"] == "train"]
        right = (train["accuracy"] * train["rows"]).groupby(train["seed"]).sum()
        summary["train_accuracy"] = right / train.groupby("seed")["rows"].sum()
    of_coefficients = results[results["part"] == COEFFICIENTS]
    for name in BESIDES["regression"]:
        if name in metrics or (len(of_coefficients) and task == "regression"):
            own = of_coefficients[of_coefficients["environment"] == name.removesuffix("_error")]
            summary[name] = own.groupby("seed")["error"].mean()
    return summary


def _over_environments(test: pd.DataFrame, metric: BoardMetric, weights: Weights) -> pd.Series[float]:
    """By seed. Not a number where a value is missing, or all are: the study was made without this metric."""
    if metric.column not in test:
        test = test.assign(**{metric.column: float("nan")})
    by_seed = test.groupby("seed")
    values = by_seed[metric.column]
    if metric.aggregate == "std":
        summed = values.std(ddof=1)
    elif metric.aggregate == "worst":
        summed = values.min() if metric.higher_is_better else values.max()
    elif weights == "rows":
        summed = (test[metric.column] * test["rows"]).groupby(test["seed"]).sum() / by_seed["rows"].sum()
    else:
        summed = values.mean()
    return summed.where(values.count() == by_seed.size())


def cells_of(results: pd.DataFrame, column: str) -> pd.DataFrame:
    """A score of the chosen configuration on every test environment: a row per seed, a column per environment."""
    test = results[results["chosen"] & (results["part"] == "test")]
    if column not in test:
        test = test.assign(**{column: float("nan")})
    return test.groupby(["seed", "environment"])[column].mean().unstack("environment")


def summarize_stability(results: pd.DataFrame) -> pd.DataFrame:
    """Per seed, of the chosen configuration: distributional stability on the pooled validation rows, its mean and
    maximum over the test environments, and the same of the divergence of test from training (ODS).

    A study from before these were measured has no numbers.
    """
    import pandas as pd

    results = results[results["chosen"]]
    results = results.reindex(columns=results.columns.union(["stability", "ods"]))
    test = results[results["part"] == "test"].groupby("seed")
    return pd.DataFrame(
        {
            "validation_stability": results[results["part"] == "pooled"].groupby("seed")["stability"].mean(),
            "test_stability": test["stability"].mean(),
            "max_test_stability": test["stability"].max(),
            "ods": test["ods"].mean(),
            "max_ods": test["ods"].max(),
        },
        index=results["seed"].unique(),
    )
