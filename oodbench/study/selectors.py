"""Selectors: how a study's configuration is chosen, from validation scores unless it says oracle."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.scoring import SCORES
from oodbench.errors import StudyFailed, UnknownName, UserError
from oodbench.plugin.registry import find, names
from oodbench.plugin.selector import Selector
from oodbench.settings.space import Value
from oodbench.study.record import Chosen

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.engine.data import Task

KAPPA = 1.0  # of a spread or a divergence that is added to a risk
OF_CLASSES = ("classification",)
MOST_LABELS = 100_000
ALPHA = 0.5  # the share of the environments that CVaR looks at


@dataclass(frozen=True)
class Mean(Selector):
    """Mean error over the validation environments."""

    def by_seed(self, scores: pd.DataFrame) -> pd.Series[float]:
        return scores.groupby(["configuration", "seed"])["risk"].mean()


@dataclass(frozen=True)
class Worst(Selector):
    """Largest error among the validation environments."""

    def by_seed(self, scores: pd.DataFrame) -> pd.Series[float]:
        return scores.groupby(["configuration", "seed"])["risk"].max()


@dataclass(frozen=True)
class Oracle(Mean):
    """Mean error over the TEST environments: an upper bound, never a fair result."""

    takes_metric: ClassVar[bool] = False
    sees_test: ClassVar[bool] = True


@dataclass(frozen=True)
class MeanSd(Selector):
    """Mean error over the validation environments plus its standard deviation over them."""

    def combine(self, risks: NDArray[np.float64]) -> float:
        return float(risks.mean() + KAPPA * risks.std())


@dataclass(frozen=True)
class Cvar(Selector):
    """Mean error over the worst half of the validation environments."""

    def combine(self, risks: NDArray[np.float64]) -> float:
        return float(np.sort(risks)[-math.ceil(ALPHA * len(risks)) :].mean())


@dataclass(frozen=True)
class WorstClass(Mean):
    """1 - recall of the worst class, mean over the validation environments."""

    metric: str = "least_recall"
    takes_metric: ClassVar[bool] = False


@dataclass(frozen=True)
class Loeo(Mean):
    """Mean error over the training environments, in each of the model that was trained without it."""

    takes_metric: ClassVar[bool] = False
    leaves_out: ClassVar[bool] = True


@dataclass(frozen=True)
class LoeoWorst(Worst):
    """Largest error among the training environments, in each of the model that was trained without it."""

    takes_metric: ClassVar[bool] = False
    leaves_out: ClassVar[bool] = True


@dataclass(frozen=True)
class OneSe(Mean):
    """The first configuration, from the defaults on, within a standard error (over seeds) of the best mean error."""

    def choose(self, scores: pd.DataFrame) -> int:
        best = scores.loc[super().choose(scores)]
        error = best.std(ddof=1) / math.sqrt(len(best)) if len(best) > 1 else 0.0
        return int(min(scores.index[scores.mean(axis=1) <= best.mean() + error]))


@dataclass(frozen=True)
class Stability(Selector):
    """Mean error over the validation environments plus the model's distributional stability on all their rows."""

    needs_stability: ClassVar[bool] = True

    def by_seed(self, scores: pd.DataFrame) -> pd.Series[float]:
        of_model = scores.groupby(["configuration", "seed"])
        return of_model["risk"].mean() + KAPPA * of_model["stability"].first()


@cache  # a look at what is installed takes a hundredth of a second, and every study asks several times
def find_selector(text: str) -> Selector:
    """Of NAME, NAME:METRIC, or NAME:LABELS. UserError where there is no such selector or metric."""
    name, _, metric = text.partition(":")
    cls = find("selector", name)
    plain: Selector = cls()
    if ":" not in text:
        return plain
    if plain.labels:
        if not (metric.isdecimal() and 0 < int(metric) <= MOST_LABELS):
            raise UserError(
                f"--selector {text}: {metric!r} is no number of labelled rows from 1 to {MOST_LABELS}.\n"
                f"Write for example {name}:{plain.labels}."
            )
        given: Selector = cls(labels=int(metric))
        return given
    if not cls.takes_metric:
        raise UserError(f"selector {name!r} takes no metric.\nWrite {name!r} alone.")
    if metric not in SCORES and metric not in names("metric"):
        raise UnknownName("metric", metric, [*SCORES, *names("metric")])
    told: Selector = cls(metric=metric)
    return told


def check_selector(text: str) -> str:
    find_selector(text)
    return text


def check_task(selector: Selector, text: str, task: Task) -> None:
    """Whether it, and its metric, are for the task."""
    if task not in selector.tasks:
        raise UserError(f"--selector {text} does not do {task}.\nChoose another selector.")
    metric = selector.metric
    tasks = find("metric", metric).tasks if metric not in SCORES else (task,) if metric == "error" else OF_CLASSES
    if task not in tasks:
        raise UserError(f"--selector {text} goes by {metric}, which a {task} does not have.\nChoose another metric.")


def needs_models(selector: Selector) -> bool:
    """Whether it goes by more than the search knows of every configuration."""
    return selector.needs_stability or selector.metric not in SCORES


def describe_selector(text: str) -> str:
    """In words."""
    selector = find_selector(text)
    own = (type(selector).__doc__ or "").partition("\n")[0].rstrip(".")
    by = f", with {selector.metric} as the error" if ":" in text and not selector.labels else ""
    return f"{own[:1].lower()}{own[1:]}{by}"


def select(
    scores: pd.DataFrame,
    selector: str,
    seeds: int,
    configurations: Sequence[Mapping[str, Value]],
    choose: str = "study",
) -> Chosen:
    """What the selector chooses among the configurations that finished on every seed: one for the study, or one for
    each seed. Of a study also what the others would choose without a seed, which says how much the choice is luck.

    `scores` has a row per configuration, seed and environment: of the validation part, or for the oracle of test.
    """
    if scores.empty:
        raise StudyFailed("no training finished")
    by_configuration = score_configurations(scores, selector)
    complete = by_configuration[by_configuration["count"] == seeds]["mean"]
    if complete.empty:
        raise StudyFailed(f"no configuration finished on all {seeds} seeds")
    table = dict(zip(complete.index.astype(int).tolist(), complete.astype(float).tolist(), strict=True))
    chooser = find_selector(selector)
    models = _by_seed(scores, chooser).unstack("seed").loc[complete.index]  # [configuration, seed]

    known_seeds: list[int] = models.columns.astype(int).tolist()

    def ask(known: pd.DataFrame) -> int:
        chosen = chooser.choose(known)
        if chosen not in table:
            raise StudyFailed(f"selector {selector!r} chose {chosen!r}, which is no configuration that finished")
        return chosen

    if choose == "seed":
        by_seed = {seed: ask(models[[seed]]) for seed in known_seeds}
        counted = Counter(by_seed.values())
        usual = min(counted, key=lambda number: (-counted[number], number))
        score = float(np.mean([models.loc[number, seed] for seed, number in by_seed.items()]))
        return Chosen(selector, usual, score, table, dict(configurations[usual]), by_seed)
    chosen = ask(models)
    without = {seed: ask(models.drop(columns=seed)) for seed in known_seeds} if seeds > 1 else {}
    return Chosen(selector, chosen, table[chosen], table, dict(configurations[chosen]), without_seed=without)


def score_configurations(scores: pd.DataFrame, selector: str) -> pd.DataFrame:
    """What the selector says of each configuration: its mean over seeds, and the count of seeds."""
    by_seed = _by_seed(scores, find_selector(selector))
    return by_seed.groupby("configuration").agg(["mean", "count"])


def _by_seed(scores: pd.DataFrame, selector: Selector) -> pd.Series[float]:
    """Of the models that have a value in every environment of their seed."""
    models = [scores["configuration"], scores["seed"]]
    has_all = scores[selector.metric].notna().groupby(models).transform("all")
    count = scores["configuration"].groupby(models).transform("size")
    scores = scores[has_all & (count == count.groupby(scores["seed"]).transform("max"))]
    values = scores[selector.metric]
    better = SCORES.get(selector.metric) or find("metric", selector.metric).better
    return selector.by_seed(scores.assign(risk=1 - values if better == "higher" else values))
