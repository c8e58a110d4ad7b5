from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oodbench.errors import BrokenPlugin, StudyFailed, UnknownName, UserError
from oodbench.study.record import Chosen
from oodbench.study.selectors import check_selector, check_task, find_selector, score_configurations
from oodbench.study.selectors import select as select_among
from oodbench.study.spec import StudyOptions


def table(*rows: tuple[int, int, str, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["configuration", "seed", "environment", "error"])


def select(scores: pd.DataFrame, selector: str, seeds: int) -> Chosen:
    return select_among(scores, selector, seeds, [{"rate": number / 10} for number in range(3)])


SCORES = table(
    (0, 0, "a", 1.0), (0, 0, "b", 9.0), (1, 0, "a", 5.5), (1, 0, "b", 5.5), (2, 0, "a", 7.0), (2, 0, "b", 7.0)
)


def test_mean_and_worst_choose_differently() -> None:
    assert select(SCORES, "mean", 1).configuration == 0
    assert select(SCORES, "worst", 1).configuration == 1


def test_scores_are_averaged_over_seeds() -> None:
    scores = table((0, 0, "a", 1.0), (0, 1, "a", 9.0), (1, 0, "a", 4.0), (1, 1, "a", 4.0))
    choice = select(scores, "worst", 2)
    assert (choice.configuration, choice.score, choice.hparams) == (1, 4.0, {"rate": 0.1})


def test_a_configuration_that_failed_on_a_seed_is_never_chosen() -> None:
    scores = table((0, 0, "a", 0.1), (1, 0, "a", 4.0), (1, 1, "a", 4.0))
    assert select(scores, "worst", 2).configuration == 1
    with pytest.raises(StudyFailed, match="no configuration finished on all 2 seeds"):
        select(scores[scores["configuration"] == 0], "worst", 2)


def test_ties_go_to_the_defaults() -> None:
    assert select(table((1, 0, "a", 1.0), (0, 0, "a", 1.0)), "mean", 1).configuration == 0


def test_unknown_selectors() -> None:
    with pytest.raises(UnknownName, match=r"Did you mean 'worst'\?"):
        check_selector("wort")


FOUR = table((0, 0, "a", 1.0), (0, 0, "b", 2.0), (0, 0, "c", 6.0), (0, 0, "d", 3.0), (0, 0, "e", 3.0))


@pytest.mark.parametrize(
    ("selector", "score"),
    [
        ("mean", 3.0),
        ("worst", 6.0),
        ("oracle", 3.0),
        ("mean_sd", 3.0 + np.sqrt((4 + 1 + 9) / 5)),
        ("cvar", 4.0),  # of the worst ceil(5 / 2)
        ("one_se", 3.0),
        ("stability", 3.0 + 0.25),
        ("worst:f1", 0.8),
        ("mean:accuracy", 0.3),
        ("cvar:log_loss", 0.4),
        ("worst_class", 0.75),
    ],
)
def test_what_selectors_say_of_a_configuration(selector: str, score: float) -> None:
    measured = FOUR.assign(
        stability=0.25,
        f1=[0.9, 0.2, 0.5, 0.7, 0.8],
        accuracy=[0.5, 0.6, 0.7, 0.8, 0.9],
        log_loss=[0.1, 0.2, 0.3, 0.4, 0.5],
        least_recall=[0.0, 0.1, 0.25, 0.4, 0.5],
    )
    assert score_configurations(measured, selector)["mean"].tolist() == [pytest.approx(score)]


def test_mean_and_worst_have_the_bits_of_pandas() -> None:
    random = np.random.default_rng(0)
    rows = [(c, s, e, random.lognormal()) for c in range(5) for s in range(10) for e in "abcdefg"]
    scores = table(*rows)
    for selector, how in (("mean", "mean"), ("oracle", "mean"), ("worst", "max")):
        by_seed = scores.groupby(["configuration", "seed"])["error"].agg(how)
        expected = by_seed.groupby("configuration").mean()
        assert score_configurations(scores, selector)["mean"].tolist() == expected.tolist()
        chosen = select_among(scores, selector, 10, [{}] * 5)
        assert (chosen.configuration, chosen.score) == (expected.tolist().index(expected.min()), expected.min())


def test_a_model_without_a_value_in_an_environment_is_never_chosen() -> None:
    scores = SCORES.assign(auc=[0.9, np.nan, 0.5, 0.5, 0.6, 0.6])
    assert select(scores, "mean:auc", 1).scores == {1: 0.5, 2: pytest.approx(0.4)}


def test_a_model_without_a_row_in_an_environment_is_never_chosen() -> None:
    assert select(SCORES[1:], "mean", 1).scores == {1: 5.5, 2: 7.0}


def test_one_se_stays_near_the_defaults() -> None:
    near = table(*[(c, s, "a", value + s) for c, value in ((0, 1.5), (1, 1.2), (2, 1.0)) for s in (0, 1)])
    assert select(near, "mean", 2).configuration == 2
    assert select(near, "one_se", 2).configuration == 0  # the standard error of the best is 0.5
    far = near.assign(error=near["error"] + np.where(near["configuration"] == 0, 0.1, 0))
    assert select(far, "one_se", 2).configuration == 1
    alone = near[near["seed"] == 0]
    assert select(alone, "one_se", 1).configuration == 2


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ("worst:acu", r"there is no metric 'acu'. Did you mean 'auc'\?"),
        ("worst:", "there is no metric ''"),
        ("oracle:auc", "selector 'oracle' takes no metric"),
        ("worst_class:auc", "selector 'worst_class' takes no metric"),
    ],
)
def test_metrics_of_selectors(selector: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        check_selector(selector)


@pytest.mark.parametrize("selector", ["mean:auc", "mean:accuracy", "worst_class"])
def test_a_regression_has_no_metric_of_classes(selector: str) -> None:
    with pytest.raises(UserError, match="which a regression does not have"):
        check_task(find_selector(selector), selector, "regression")
    check_task(find_selector(selector), selector, "classification")


def test_closer_looks_come_after_a_search_that_was_drawn_up_front() -> None:
    with pytest.raises(UserError, match="--selector mean:auc looks at all trained models after the search"):
        StudyOptions(selector="mean:auc", budget="1m")
    assert StudyOptions(selector="mean:f1", budget="1m").selector == "mean:f1"


OWN = """
from dataclasses import dataclass
import numpy as np
from oodbench import Selector

@dataclass(frozen=True)
class Median(Selector):
    '''Median error.'''
    def combine(self, risks):
        return np.median(risks)

@dataclass(frozen=True)
class Cheat(Median):
    sees_test = True

@dataclass(frozen=True)
class Idle(Selector):
    pass
"""


def test_selectors_of_a_users_own(distribution: Callable[..., Path]) -> None:
    points = "median = own_selectors:Median\ncheat = own_selectors:Cheat\nidle = own_selectors:Idle"
    distribution("own-selectors", "own_selectors", OWN, selectors=points)
    assert select(SCORES, "median", 1).scores == {0: 5.0, 1: 5.5, 2: 7.0}
    with pytest.raises(BrokenPlugin, match="sees test data: only the built-in oracle may"):
        check_selector("cheat")
    with pytest.raises(BrokenPlugin, match="defines neither combine nor by_seed"):
        check_selector("idle")
