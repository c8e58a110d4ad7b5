"""The training and validation data of a dataset setting, and what of it a search may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.data import Environment, TrainingRows
from oodbench.plugin.dataset import Dataset, fault_in, fault_in_encoder, fingerprint


@dataclass(frozen=True, eq=False)
class SearchData:
    """What the search may see of one seed."""

    train: TrainingRows
    validation: tuple[Environment, ...]

    @property
    def tables(self) -> list[NDArray[np.float64]]:
        """The columns of all rows, which models take in single precision."""
        return [self.train.x, *(environment.x for environment in self.validation)]

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """All that is known of the rows."""
        train = [array for array in (self.train.y, self.train.environment, self.train.weights) if array is not None]
        return [*self.tables, *train, *(array for environment in self.validation for array in targets(environment))]


class SharedData:
    """The training and validation data of a dataset setting, made once for all methods that are compared on it."""

    def __init__(self, dataset: Dataset, seeds: list[int]) -> None:
        self.dataset = dataset
        self.train: dict[int, tuple[Environment, ...]] = {}
        self.validation: dict[int, tuple[Environment, ...]] = {}
        self.pooled_train: dict[int, Environment] = {}  # the same rows, in the same memory
        self.pooled_validation: dict[int, Environment] = {}
        self.encoders = {seed: dataset.encoder(seed) for seed in seeds}
        for seed in seeds:
            self._make(seed)
        for part, make in (("training", dataset.train), ("validation", dataset.validation)):
            first = self.train if part == "training" else self.validation
            if fingerprint(make(seeds[0])) != fingerprint(first[seeds[0]]):
                raise ValueError(f"{part} data differ from call to call for the same seed: use self.rng(seed, part)")
        self.fingerprint = fingerprint(
            environment for seed in seeds for environment in (*self.train[seed], *self.validation[seed])
        )
        self._for_search: dict[tuple[int, bool, bool, int | None], SearchData] = {}
        self.of_constant: dict[tuple[int, str, int], list[dict[str, Any]]] = {}
        """Test scores of the constant, which all studies share: by seed, fingerprint and number of given labels."""

    def _make(self, seed: int) -> None:
        """The rows of a seed, checked. What the dataset made of them is let go before the next seed's are made."""
        self._check(fault_in_encoder(self.encoders[seed], self.dataset))
        train = tuple(self.dataset.train(seed))
        self._check(fault_in("training", train, self.dataset))
        self.pooled_train[seed] = Environment.pooled("training", train)
        self.train[seed] = self.pooled_train[seed].divide(train)
        features = train[0].x.shape[1]
        del train
        validation = tuple(self.dataset.validation(seed))
        self._check(fault_in("validation", validation, self.dataset, features))
        self._check(self.fault_in_weights("validation", validation))
        self.pooled_validation[seed] = Environment.pooled("validation", validation)
        self.validation[seed] = self.pooled_validation[seed].divide(validation)

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """All rows of all seeds, each once."""
        parts = [*self.pooled_train.values(), *self.pooled_validation.values()]
        return [array for part in parts for array in (part.x, *targets(part))]

    @staticmethod
    def _check(fault: str | None) -> None:
        if fault:
            raise ValueError(fault)

    def fault_in_weights(self, part: str, environments: Sequence[Environment]) -> str | None:
        """Why rows of this part count otherwise than those of training, or None."""
        if (environments[0].weights is not None) == self.weighted:
            return None
        has, lacks = ("training", part) if self.weighted else (part, "training")
        return f"{has} rows have weights, and {lacks} rows have none"

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return next(iter(self.train.values()))[0].weights is not None

    @cached_property
    def validation_fingerprint(self) -> str:
        return fingerprint(environment for environments in self.validation.values() for environment in environments)

    @property
    def labelled(self) -> bool:
        return all(len(environments) > 1 for environments in self.train.values())

    @property
    def environments(self) -> int:
        """Of training, on every seed."""
        return min(len(environments) for environments in self.train.values())

    def for_search(self, seed: int, labelled: bool, with_truth: bool = False, without: int | None = None) -> SearchData:
        """All that a worker gets of a seed, made once; labels and the invariant columns only where they are needed.
        `without` a training environment, that is what the models are scored on.

        The rows are those of the seed, not copies; but without an environment, the others are put together once more.
        """
        key = (seed, labelled, with_truth, without)
        if key not in self._for_search:
            train, together, validation = self.train[seed], self.pooled_train[seed], self.validation[seed]
            if without is not None:
                train, validation = (*train[:without], *train[without + 1 :]), (train[without],)
                together = Environment.pooled("training", train)
            rows = rows_of(self.dataset, together, train, labelled, with_truth)
            self._for_search[key] = SearchData(rows, validation)
        return self._for_search[key]


def targets(environment: Environment) -> list[NDArray[Any]]:
    """And weights, where there are any."""
    return [environment.y] if environment.weights is None else [environment.y, environment.weights]


def pool_rows(
    data: Dataset, environments: Sequence[Environment], labelled: bool, with_truth: bool = False
) -> TrainingRows:
    """Training rows as a method sees them, with labels and the invariant columns only where they are needed."""
    return rows_of(data, Environment.pooled("training", environments), environments, labelled, with_truth)


def rows_of(
    data: Dataset, together: Environment, environments: Sequence[Environment], labelled: bool, with_truth: bool
) -> TrainingRows:
    """Those of environments that are pooled already."""
    sizes = [len(environment) for environment in environments] if labelled else None
    rows = TrainingRows.of(together, sizes, data.task, data.classes, data.columns)
    return replace(rows, invariant=data.invariant if with_truth else None, categories=data.categories)
