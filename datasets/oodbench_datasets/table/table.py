"""Any table of the user's own, a CSV or Parquet file, as a dataset."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from oodbench import Dataset, Environment, Mlp, Recipe, setting
from oodbench.engine.data import Task
from oodbench.errors import InvalidSetting, UnknownName
from oodbench_datasets.table.features import Category, Feature, find_features
from oodbench_datasets.table.file import TableFile, open_table
from oodbench_datasets.table.target import Target, find_target, parse_bound

Integers = NDArray[np.int64]

SHARE = 0.7  # of a training environment's rows that a seed trains on, unless train_rows says how many
EXAMPLE = Path(__file__).parents[1] / "table_example.csv"


@dataclass(frozen=True)
class Table(Dataset):
    """A table of your own, a CSV or Parquet file: train in some environments, test in the others.

    A column says which environment a row is from. Every seed trains on other rows of the training environments and
    validates on their remaining rows, one validation environment each. Rows without a target or an environment are
    left out. Numbers are standardised, and so is the target of a regression: predicting the training mean has error 1.
    Text, true/false and whole numbers with 3 to 10 distinct values are categories, unless told otherwise. A missing
    number is the median, marked in a column of its own; a missing category is a level of its own.
    """

    model = Mlp(width=(32,))
    recipe = Recipe(steps=1000)
    tiny = {"path": str(EXAMPLE), "target": "late", "environment": "region", "train": ("north", "south")}

    path: str = setting("", "a file: .csv, .tsv (also with .gz) or .parquet")
    target: str = setting("", "the column to predict")
    environment: str = setting("", "the column that says which environment a row is from")
    train_in: tuple[str, ...] = setting((), "environments to train on; several are the known groups", name="train")
    test_in: tuple[str, ...] = setting((), "environments to test on; if none is named, all others", name="test")
    problem: Literal["auto", "regression", "classification"] = setting(
        "auto", "auto: regression for numbers with more than two distinct values, else classification", name="task"
    )
    positive: str = setting("", "what makes a row class 1: a bound such as >20 or <=0.5, or a value of the target")
    drop: tuple[str, ...] = setting((), "columns to drop")
    categorical: tuple[str, ...] = setting((), "columns whose numbers are codes")
    numeric: tuple[str, ...] = setting((), "columns whose numbers are quantities, even with few distinct values")
    rare: float = setting(0.01, "levels in less than this share of the training environments' rows are merged")
    train_rows: int = setting(0, f"rows of each training environment a seed trains on; 0: {SHARE:.0%} of them")
    validation_rows: int = setting(
        0, "most validation rows of each training environment, from the rows not trained on; 0: all"
    )
    test_rows: int = setting(5000, "most rows of each test environment, sampled anew for each seed; 0: all")
    least_rows: int = setting(10, "fewest rows that an environment may have")

    def __post_init__(self) -> None:
        if min(self.train_rows, self.validation_rows, self.test_rows) < 0 or self.least_rows < 2:
            raise ValueError("train_rows, validation_rows and test_rows must be 0 or more, least_rows 2 or more.")
        if not 0 <= self.rare < 1:
            raise ValueError("rare is a share, from 0 to below 1.")
        parse_bound(self.positive)
        if self.positive and self.problem == "regression":
            raise ValueError("positive defines classes, and task=regression has none.\nRemove one of the two settings.")
        used: dict[str, str] = {}
        columns = {"target": (self.target,), "environment": (self.environment,), "drop": self.drop}
        columns |= {"categorical": self.categorical, "numeric": self.numeric}
        for names, what in ((columns, "column"), ({"train": self.train_in, "test": self.test_in}, "environment")):
            for role, listed in names.items():
                for name in filter(None, listed):
                    if used.setdefault(f"{what} {name!r}", role) != role or listed.count(name) > 1:
                        earlier = used[f"{what} {name!r}"]
                        twice = f"twice in {role}" if earlier == role else f"both in {earlier} and in {role}"
                        raise ValueError(f"{what} {name!r} is {twice}.\nName it once.")

    @property
    def task(self) -> Task:
        return self._prepared.target.task

    @property
    def classes(self) -> int:
        return len(self._prepared.target.classes) or 2

    @property
    def file_hash(self) -> str:
        return self._prepared.digest

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for feature in self._prepared.features for column in feature.columns)

    @property
    def categories(self) -> tuple[range, ...]:
        features = self._prepared.features
        ends = itertools.accumulate((len(feature.columns) for feature in features), initial=0)
        blocks = zip(features, itertools.pairwise(ends), strict=True)
        return tuple(range(start, end) for feature, (start, end) in blocks if isinstance(feature, Category))

    def train(self, seed: int) -> Sequence[Environment]:
        return self._encode({name: train for name, (train, _) in self._split(seed).items()}, seed)

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._encode({name: rest for name, (_, rest) in self._split(seed).items()}, seed)

    def test(self, seed: int) -> Sequence[Environment]:
        return self._encode(
            {name: self._sample(rows, seed, f"test {name}") for name, rows in self._prepared.test.items()}, seed
        )

    @functools.cached_property
    def _prepared(self) -> Prepared:
        missing = [name for name in ("path", "target", "environment", "train") if not self._given[name]]
        if missing:
            raise InvalidSetting(
                f"dataset 'table' needs {', '.join(missing)}.\n"
                "For example: --set path=people.csv --set target=income --set environment=state --set train=MA."
            )
        needed = (self.target, self.environment, *self.categorical, *self.numeric)
        return _prepare(self, open_table(self.path, self.drop, needed))

    @property
    def _given(self) -> dict[str, object]:
        return {"path": self.path, "target": self.target, "environment": self.environment, "train": self.train_in}

    def _split(self, seed: int) -> dict[str, tuple[Integers, Integers]]:
        """Of each training environment the rows to train on, and the rows to validate on."""
        split = {}
        for name, rows in self._prepared.train.items():
            shuffled = self.rng(seed, f"split {name}").permutation(rows)
            count = self.train_rows or round(SHARE * len(rows))
            most = self.validation_rows or len(rows)
            split[name] = np.sort(shuffled[:count]), np.sort(shuffled[count : count + most])
        return split

    def _sample(self, rows: Integers, seed: int, part: str) -> Integers:
        if not self.test_rows or len(rows) <= self.test_rows:
            return rows
        return np.sort(self.rng(seed, part).choice(rows, self.test_rows, replace=False))

    def _encode(self, parts: Mapping[str, Integers], seed: int) -> list[Environment]:
        """Environments by their rows; what encodes them is learnt from the seed's training rows."""
        train = np.concatenate([rows for rows, _ in self._split(seed).values()])
        rows = np.concatenate(list(parts.values()))
        x = np.column_stack([feature.encode(rows, train) for feature in self._prepared.features])
        target = self._prepared.target
        y = target.y[rows]
        if target.task == "regression":
            y = (y - target.y[train].mean()) / (target.y[train].std() or 1.0)
        ends = np.cumsum([len(part) for part in parts.values()])[:-1]
        split = zip(parts, np.split(x, ends), np.split(y, ends), strict=True)
        return [Environment(name, part_x, part_y) for name, part_x, part_y in split]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table, checked: its target, features, and the rows of each environment."""

    digest: str
    target: Target
    features: list[Feature]
    train: dict[str, Integers]
    test: dict[str, Integers]


@functools.lru_cache(maxsize=2)  # a run makes the same dataset more than once
def _prepare(dataset: Table, table: TableFile) -> Prepared:
    environments = table.levels(dataset.environment)
    present = table.present(dataset.environment) & table.present(dataset.target)
    counts = np.bincount(environments.codes[present], minlength=len(environments.texts))
    code_of = {text: code for code, text in enumerate(environments.texts) if counts[code]}
    if len(code_of) < 2:
        raise InvalidSetting(
            f"dataset 'table': column {dataset.environment!r} has fewer than two environments with a target.\n"
            "There must be one to train on and another to test on."
        )
    tested = dataset.test_in or tuple(name for name in code_of if name not in dataset.train_in)
    for name in (*dataset.train_in, *tested):
        if name not in code_of:
            raise UnknownName(f"environment in column {dataset.environment!r}", name, list(code_of)[:100])
    if not tested:
        raise InvalidSetting(
            f"dataset 'table': all environments of {dataset.environment!r} are in train, and none is left to test on.\n"
            "Remove one from train."
        )
    _check_rows(dataset, {name: int(counts[code_of[name]]) for name in (*dataset.train_in, *tested)})
    wanted = np.isin(environments.codes, [code_of[name] for name in (*dataset.train_in, *tested)])
    kept = np.flatnonzero(present & wanted)
    codes, table = environments.codes[kept], table.only(kept)
    rows = {name: np.flatnonzero(codes == code_of[name]) for name in (*dataset.train_in, *tested)}
    train = {name: rows[name] for name in dataset.train_in}
    pool = np.concatenate(list(train.values()))
    columns = [name for name in table.names if name not in (dataset.target, dataset.environment)]
    return Prepared(
        digest=table.digest,
        target=find_target(table, dataset.target, pool, dataset.problem, dataset.positive),
        features=find_features(table, columns, pool, dataset.categorical, dataset.numeric, dataset.rare),
        train=train,
        test={name: rows[name] for name in tested},
    )


def _check_rows(dataset: Table, counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        if count < dataset.least_rows:
            raise InvalidSetting(
                f"dataset 'table': environment {name!r} has {count} rows, fewer than least_rows={dataset.least_rows}.\n"
                "Leave it out by naming the others in test or train, or lower least_rows."
            )
        if name in dataset.train_in and count <= dataset.train_rows:
            raise InvalidSetting(
                f"dataset 'table': environment {name!r} has only {count} rows for train_rows={dataset.train_rows}.\n"
                "Lower it: some rows must be left to validate on."
            )
