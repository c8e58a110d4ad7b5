"""Raw tables and their studies without Ray: numbers, categories with gaps, a regression, three classes, the census."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oodbench.kit.estimators import EstimatorModel, class_numbers
from oodbench.search.worker import run_pack
from oodbench.study.outcome import Outcome, conclude
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.spec import StudyOptions
from oodbench.study.study import Study

ROWS = 240
TREES = "trees"
PLACES = ("a", "b", "c")


@dataclass(frozen=True)
class Case:
    """A study on a raw file, and the rows that it was made of."""

    name: str
    study: Study
    outcome: Outcome
    frame: pd.DataFrame  # the file; the census has none

    def raw(self, part: str, seed: int) -> dict[str, pd.DataFrame]:
        """The raw rows of a part, by environment, in the order of the study's own."""
        data: Any = self.study.dataset
        if self.name == "census":
            people = data._rows((*data.source, *data._targets))
            split = {state: data._split(seed, state, len(people[state])) for state in data.source}
            index = {"train": {state: train for state, (train, _) in split.items()}}
            index["test"] = {state: np.arange(len(people[state])) for state in data._targets}
            return {state: pd.DataFrame(dict(people[state].columns)).iloc[rows] for state, rows in index[part].items()}
        if part == "train":
            return {name: self.frame.iloc[rows] for name, (rows, _) in data._split(seed).items()}
        return {name: self.frame.iloc[rows] for name, rows in data._prepared.test.items()}


def make_frame() -> pd.DataFrame:
    """Every kind of column; the targets follow two of them."""
    rng = np.random.default_rng(3)
    size, color = rng.normal(50, 20, ROWS), rng.choice(["red", "green", "blue", "tan"], ROWS)
    frame = pd.DataFrame(
        {
            "place": np.resize(PLACES, ROWS),
            "size": size.round(3),
            "weight": (rng.normal(7, 2, ROWS) + size / 10).round(3),
            "color": color,
            "shop": np.char.add("s", rng.integers(0, 30, ROWS).astype(str)).astype(object),
            "stars": rng.integers(1, 6, ROWS),
            "grade": rng.choice(["low", "mid", "top"], ROWS),
            "open": rng.random(ROWS) < 0.5,
            "day": pd.date_range("2021-01-01", periods=ROWS).strftime("%d.%m.%Y"),
            "cost": [f"{value:,.1f}" for value in rng.uniform(100, 9000, ROWS)],
        }
    )
    frame.loc[rng.random(ROWS) < 0.15, "weight"] = np.nan
    frame.loc[rng.random(ROWS) < 0.15, ["color", "shop"]] = None
    frame.loc[(frame["place"] == "c") & (rng.random(ROWS) < 0.3), "color"] = "black"  # never in training
    pay = 3000 + 12 * size + 300 * (color == "red") + rng.normal(0, 80, ROWS)
    frame["pay"] = pay.round(2)
    frame["late"] = np.where(pay > np.median(pay), "yes", "no")
    frame["rank"] = pd.cut(frame["pay"], [-np.inf, *np.quantile(pay, [0.3, 0.6]), np.inf], labels=list("xyz")).astype(
        str
    )
    return frame


MIXED = {"thousands": "comma", "dates": "day", "ordinal": "grade=low<mid<top", "many_as": "frequency", "many": "10"}
CASES: Mapping[str, dict[str, Any]] = {
    "numbers": {"target": "late", "columns": ["size", "weight"]},
    "categories": {"target": "late", **MIXED},
    "regression": {"target": "pay", **MIXED},
    "three": {"target": "rank", "columns": ["size", "color", "weight"]},
}
CENSUS = {"data": "synthetic", "train_rows": 200, "validation_rows": 200, "target": ("RI",), "encoding": "categories"}


@functools.cache
def make_case(name: str, folder: Path, method: str = "erm") -> Case:
    """Concluded, with the models of two seeds: trained by `erm`, or trees in their place."""
    if method == TREES:
        return _with_trees(make_case(name, folder))
    options: dict[str, Any] = {"trials": 2, "seeds": 2, "recipe": {"steps": 60}}
    if name == "census":
        return _conclude(name, "acs_travel", StudyOptions(settings=CENSUS, **options), pd.DataFrame())
    settings = dict(CASES[name])
    target, frame = settings["target"], make_frame()
    if "columns" in settings:
        frame = frame[["place", *settings.pop("columns"), target]]
    else:
        frame = frame.drop(columns=[other for other in ("pay", "late", "rank") if other != target])
    path = folder / f"{name}.csv"
    frame.to_csv(path, index=False)
    settings |= {"path": str(path), "environment": "place", "train": ("a", "b")}
    return _conclude(name, "table", StudyOptions(settings=settings, **options), frame)


def _with_trees(case: Case) -> Case:
    """To conclude a study of them would take longer: how stable they are is looked for."""
    from sklearn.tree import DecisionTreeClassifier

    models = {}
    for seed in case.study.seeds:
        train = case.study.search_data(seed).train
        tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(train.x, class_numbers(train))
        models[seed] = EstimatorModel.wrap(tree, "sklearn", train)
    return replace(case, outcome=replace(case.outcome, models=models))


def _conclude(name: str, dataset: str, options: StudyOptions, frame: pd.DataFrame) -> Case:
    (study,) = plan(resolve(Request(["erm"], [dataset], options)), "cpu")
    packs = {
        pack.index: run_pack(study.method, pack, {seed: study.search_data(seed) for seed in pack.seeds}, study.setup)
        for pack in study.packs
    }
    predictors = {
        (trial.configuration, trial.seed): predictor
        for pack in study.packs
        for trial, predictor in zip(pack.trials, packs[pack.index].predictors, strict=True)
    }
    return Case(name, study, conclude(study, packs, predictors, lambda choice: None, time.time()), frame)
