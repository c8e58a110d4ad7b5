"""Selectors that see rows of the test environments: their formulas, what they are given, and how boards treat them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concluding import concluded, outcome_of, planned
from oodbench import Choice, Dataset, Environment, Method, Target, TrainingRows
from oodbench.board.leaderboard import compile_leaderboard
from oodbench.engine.data import Task
from oodbench.errors import BrokenPlugin, UnequalTerms, UserError
from oodbench.plugin.selector import told_to
from oodbench.report.formats import render
from oodbench.study.record import Chosen
from oodbench.study.selectors import check_selector, check_task, describe_selector, find_selector
from oodbench.study.target_selectors import Atc, FewShot, Importance, density_ratio


@dataclass
class Tilted:
    """Class 1 with a probability that grows with the first column."""

    slope: float

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        share = 1 / (1 + np.exp(-self.slope * x[:, 0]))
        return np.column_stack([1 - share, share])

    def predict(self, x: np.ndarray) -> np.ndarray:
        return (self.slope * x[:, 0] > 0).astype(int)


class Slopes(Method):
    space = {"slope": Choice(1.0, -1.0, 3.0)}

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> Any:
        return Tilted(hparams["slope"])


class Plain(Slopes):
    """Without probabilities."""

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> Any:
        return PlainModel(hparams["slope"])


@dataclass
class PlainModel:
    slope: float

    def predict(self, x: np.ndarray) -> np.ndarray:
        return (self.slope * x[:, 0] > 0).astype(int)


@dataclass(frozen=True)
class Turned(Dataset):
    """In test, y is the other class: what is best on validation data is worst there."""

    task: ClassVar[Task] = "classification"
    rows: int = 40

    def _rows(self, seed: int, part: str, names: str, sign: int) -> list[Environment]:
        rng, made = self.rng(seed, part), []
        for name in names:
            x = rng.normal(size=(self.rows, 2))
            made.append(Environment(name, x, (sign * x[:, 0] > 0).astype(int)))
        return made

    def train(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "train", "ab", 1)

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "validation", "ab", 1)

    def test(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "test", "xyz", -1)


def target(rng: np.random.Generator, shift: float = 0.0, task: Task = "classification") -> Target:
    x = rng.normal(size=(60, 2))
    y = (x[:, 0] + rng.normal(size=60) > 0).astype(int) if task == "classification" else rng.normal(size=60)
    return Target(rng.normal(shift, size=(50, 2)), None, Environment("validation", x, y), task, 2)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(-1, 1), st.sampled_from(["classification", "regression"]))
def test_importance_is_its_formula(entropy: int, shift: float, task: Task) -> None:
    rng = np.random.default_rng(entropy)
    seen, model = target(rng, shift, task), Tilted(rng.normal())
    x, y = seen.validation.x, seen.validation.y
    linear = pytest.importorskip("sklearn.linear_model")
    both, is_target = np.vstack([x, seen.x]), np.repeat([0, 1], [60, 50])
    scaled = (both - both.mean(0)) / both.std(0)
    # our two classes have half of its coefficient each, and so half of the penalty together
    fit = linear.LogisticRegression(C=2 / (1e-3 * len(both)), tol=1e-10).fit(scaled, is_target)
    pi, share = fit.predict_proba(scaled[:60])[:, 1], 50 / 110
    weights = pi / (1 - pi) * (1 - share) / share
    losses = (model.predict(x) != y) if task == "classification" else (model.predict(x) - y) ** 2
    assert Importance().estimator(seen)(model) == pytest.approx((weights * losses).sum() / weights.sum(), rel=1e-4)


def test_rows_of_the_target_count_more() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 1))
    weights = density_ratio(x, rng.normal(1, size=(500, 1)))
    assert weights.sum() == pytest.approx(1)
    assert np.average(x[:, 0], weights=weights) == pytest.approx(1, abs=0.25)
    apart = density_ratio(x, x + 100)
    assert np.isfinite(apart).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(-2, 2))
def test_atc_is_its_formula(entropy: int, shift: float) -> None:
    rng = np.random.default_rng(entropy)
    seen, model = target(rng, shift), Tilted(rng.normal())

    def certainty(x: np.ndarray) -> np.ndarray:
        shares = model.predict_proba(x)
        return np.asarray((shares * np.log(shares)).sum(1))

    known = certainty(seen.validation.x)
    wrong = np.mean(model.predict(seen.validation.x) != seen.validation.y)
    estimated = Atc().estimator(seen)(model)
    # any bound with as many validation rows below it as are wrong
    ordered = np.append(np.sort(known), np.inf)
    bound = next(value for value in ordered if np.isclose(np.mean(known < value), wrong))
    assert estimated == pytest.approx(1 - np.mean(certainty(seen.x) >= bound))
    unshifted = replace(seen, x=seen.validation.x)
    assert Atc().estimator(unshifted)(model) == pytest.approx(wrong)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 30))
def test_few_shot_is_its_formula(entropy: int, labels: int) -> None:
    rng = np.random.default_rng(entropy)
    y = rng.integers(0, 2, labels)
    seen, model = replace(target(rng), x=rng.normal(size=(labels, 2)), y=y), Tilted(1.0)
    assert FewShot(labels=labels).estimator(seen)(model) == pytest.approx(np.mean(model.predict(seen.x) != y))


@pytest.mark.parametrize("selector", ["importance", "atc", "few_shot:5"])
def test_from_the_plan_to_the_board(selector: str) -> None:
    told = told_to(find_selector(selector))
    study = planned(Slopes, Turned, trials=3, seeds=2, selector=selector, open_all=True)
    assert study.label == f"slopes ({selector}: {told})"
    written: list[Chosen] = []
    done = concluded(study, written)
    choice, results, opening = done.record.choice, done.results, done.record.opening
    assert choice is not None
    assert results is not None
    assert opening is not None
    assert written == [choice]
    assert (done.record.choice_told, opening.before_selection) == (told, False)
    estimated = results[results["part"] == "estimated"]
    assert len(estimated) == 3 * 2 * 3
    means = estimated.groupby(["configuration", "seed"])["error"].mean().groupby("configuration").mean()
    assert choice.scores == pytest.approx(means.to_dict())
    if selector == "few_shot:5":
        assert set(opening.rows.values()) == {35}
        assert set(results[results["part"].isin(["test", "opened", "constant"])]["rows"]) == {35}
        assert study.configurations[choice.configuration] == {"slope": -1.0}  # which is right in test, and there alone
    else:
        assert set(opening.rows.values()) == {40}
    board = compile_leaderboard("data", [done], price=True)
    assert set(board.rows[0].picks) >= {selector, "mean", "worst_class", "oracle"}
    assert not {"importance", "atc", "few_shot"} - {selector} & set(board.rows[0].picks)
    for format in ("md", "csv", "json", "latex"):
        assert told in render(board, format)


def test_a_board_of_its_own() -> None:
    plain, atc = (concluded(planned(Slopes, Turned, trials=3, seeds=2, selector=name)) for name in ("worst", "atc"))
    importance = concluded(planned(Plain, Turned, trials=3, seeds=2, selector="importance"))
    with pytest.raises(UnequalTerms, match="slopes: chosen on validation scores alone; slopes .atc: sees unlab"):
        compile_leaderboard("data", [plain, atc])
    board = compile_leaderboard("data", [plain, atc], mixed=True)
    assert [bool(row.unequal) for row in board.rows].count(True) == 1
    assert not any(row.unequal for row in compile_leaderboard("data", [atc, importance]).rows)


def test_a_model_without_probabilities_cannot_be_chosen_by_atc() -> None:
    outcome = outcome_of(planned(Plain, Turned, trials=3, seeds=2, selector="atc"), [])
    assert "no model can be selected by atc" in outcome.record.reason
    assert "the model gives no probabilities" in outcome.record.reason


def test_an_environment_must_have_more_rows_than_are_given() -> None:
    outcome = outcome_of(planned(Slopes, Turned, settings={"rows": 8}, trials=3, seeds=2, selector="few_shot:8"), [])
    assert "is given 8 labelled rows of each test environment, and 'x' has 8" in outcome.record.reason


def test_what_a_user_may_write() -> None:
    assert find_selector("few_shot") == FewShot(labels=10)
    assert find_selector("few_shot:3") == FewShot(labels=3)
    assert describe_selector("few_shot:3").startswith("mean error over test environments, on a few labelled rows")
    for text in ("few_shot:0", "few_shot:x", "few_shot:-1", "few_shot:"):
        with pytest.raises(UserError, match="is no number of labelled rows"):
            check_selector(text)
    with pytest.raises(UserError, match="takes no metric"):
        check_selector("atc:auc")
    with pytest.raises(UserError, match="--selector atc does not do regression"):
        check_task(find_selector("atc"), "atc", "regression")


OWN = """
from dataclasses import dataclass
from oodbench import Selector

SEEN = []

@dataclass(frozen=True)
class Spy(Selector):
    sees_unlabelled = True
    def estimator(self, target):
        SEEN.append(target)
        return lambda model: 0.0
    def combine(self, risks):
        return risks.mean()

@dataclass(frozen=True)
class Lazy(Selector):
    sees_unlabelled = True
    def combine(self, risks):
        return risks.mean()
"""


def test_a_selector_of_a_users_own_gets_x_and_nothing_else(distribution: Callable[..., Path]) -> None:
    distribution("own-spy", "own_spy", OWN, selectors="spy = own_spy:Spy\nlazy = own_spy:Lazy")
    with pytest.raises(BrokenPlugin, match="sees test rows and does not define estimator"):
        check_selector("lazy")
    done = concluded(planned(Slopes, Turned, trials=2, seeds=1, selector="spy"))
    own_spy = importlib.import_module("own_spy")
    assert done.record.label == "slopes (spy: sees unlabelled test rows)"
    assert len(own_spy.SEEN) == 3
    for seen, environment in zip(own_spy.SEEN, Turned().test(0), strict=True):
        assert seen.y is None
        assert np.array_equal(seen.x, environment.x)
