"""Any table of the user's own, a CSV or Parquet file, as a dataset."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oodbench import Dataset, Environment, Mlp, Recipe
from oodbench.encoder import Encoder
from oodbench.engine.data import Task
from oodbench.errors import InvalidSetting
from oodbench_datasets.table.features import Category
from oodbench_datasets.table.fit import encode, fit_encoder
from oodbench_datasets.table.ordinal import parse_ordinals
from oodbench_datasets.table.prepare import Prepared, prepare
from oodbench_datasets.table.read import open_table
from oodbench_datasets.table.report import describe
from oodbench_datasets.table.rows import parse_conditions
from oodbench_datasets.table.settings import SHARE, TableSettings
from oodbench_datasets.table.warn import find_warnings

Integers = NDArray[np.int64]

EXAMPLE = Path(__file__).parents[1] / "table_example.csv"


@dataclass(frozen=True)
class Table(TableSettings, Dataset):
    """A table of your own, a CSV or Parquet file: train in some environments, test in the others.

    A column says which environment a row is from. Every seed trains on other rows of the training environments and
    validates on their remaining rows, one validation environment each. Rows without a target or an environment are
    left out. Numbers are standardised, and so is the target of a regression: predicting the training mean has error 1.
    Text, true/false and whole numbers with 3 to 10 distinct values are categories, unless told otherwise. A missing
    number is the median, marked in a column of its own; a missing category is a level of its own.
    """

    model = Mlp(width=(32,))
    recipe = Recipe(steps=1000)
    essential = ("path", "target", "environment", "train")
    tiny = {"path": str(EXAMPLE), "target": "late", "environment": "region", "train": ("north", "south")}

    @property
    def task(self) -> Task:
        return self._prepared.target.task

    @property
    def classes(self) -> int:
        return len(self._prepared.target.classes) or 2

    @property
    def file_hash(self) -> str:
        return self._prepared.table.digest

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for feature in self._prepared.features for column in feature.columns)

    @property
    def categories(self) -> tuple[range, ...]:
        features = self._prepared.features
        ends = itertools.accumulate((len(feature.columns) for feature in features), initial=0)
        blocks = zip(features, itertools.pairwise(ends), strict=True)
        return tuple(range(start, end) for feature, (start, end) in blocks if isinstance(feature, Category))

    @property
    def target_is_scaled(self) -> bool:
        return self.task == "regression"

    @property
    def notice(self) -> str:
        return f"Rows are weighted by the column {self.weight!r}." if self.weight else ""

    @property
    def rows_left_out(self) -> Mapping[str, int]:
        return self._prepared.left_out

    def describe_data(self) -> Mapping[str, Sequence[Mapping[str, object]]]:
        return describe(self, self._prepared)

    @functools.cached_property
    def warnings(self) -> Sequence[str]:
        return find_warnings(self, self._prepared)

    def encoder(self, seed: int) -> Encoder:
        return fit_encoder(self, self._prepared, self._train_rows(seed))

    def train(self, seed: int) -> Sequence[Environment]:
        return self._encode({name: train for name, (train, _) in self._split(seed).items()}, seed)

    def validation(self, seed: int) -> Sequence[Environment]:
        parts = {
            name: self._sample(rows, seed, f"validation {name}", self.validation_rows)
            for name, rows in self._prepared.validation.items()
        }
        return self._encode(parts or {name: rest for name, (_, rest) in self._split(seed).items()}, seed)

    def test(self, seed: int) -> Sequence[Environment]:
        return self._encode(
            {
                name: self._sample(rows, seed, f"test {name}", self.test_rows)
                for name, rows in self._prepared.test.items()
            },
            seed,
        )

    def all_train(self, seed: int) -> tuple[Sequence[Environment], Encoder]:
        """All rows of the training environments, for every seed."""
        pool = self._prepared.pool
        encoder = fit_encoder(self, self._prepared, pool)
        return encode(self._prepared, self._prepared.train, pool, encoder), encoder

    @functools.cached_property
    def _prepared(self) -> Prepared:
        missing = [name for name in self.essential if not self._given[name]]
        if missing:
            raise InvalidSetting(
                f"dataset 'table' needs {', '.join(missing)}.\n"
                "For example: --set path=people.csv --set target=income --set environment=state --set train=MA."
            )
        asked = [condition.column for condition in parse_conditions(self.where)]
        named = (*self.categorical, *self.numeric, *parse_ordinals(self.ordinal))
        asked += [self.weight] if self.weight else []
        unread = [name for name in self.drop if name not in asked]
        return prepare(
            self, open_table(self.path, unread, (self.target, *self.environment, *named, *asked), self.reading)
        )

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

    def _sample(self, rows: Integers, seed: int, part: str, most: int) -> Integers:
        if not most or len(rows) <= most:
            return rows
        return np.sort(self.rng(seed, part).choice(rows, most, replace=False))

    def _encode(self, parts: Mapping[str, Integers], seed: int) -> list[Environment]:
        """Environments by their rows; what encodes them is learnt from the seed's training rows."""
        train = self._train_rows(seed)
        return encode(self._prepared, parts, train, fit_encoder(self, self._prepared, train))

    def _train_rows(self, seed: int) -> Integers:
        return np.concatenate([rows for rows, _ in self._split(seed).values()])
