"""The training and validation data of a dataset setting, and what of it a search may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from oodbench.engine.data import Environment, TrainingRows
from oodbench.plugin.dataset import Dataset, fault_in, fault_in_encoder, fingerprint


@dataclass(frozen=True, eq=False)
class SearchData:
    """What the search may see of one seed."""

    train: TrainingRows
    validation: tuple[Environment, ...]


class SharedData:
    """The training and validation data of a dataset setting, made once for all methods that are compared on it."""

    def __init__(self, dataset: Dataset, seeds: list[int]) -> None:
        self.dataset = dataset
        self.train = {seed: tuple(dataset.train(seed)) for seed in seeds}
        self.validation = {seed: tuple(dataset.validation(seed)) for seed in seeds}
        self.encoders = {seed: dataset.encoder(seed) for seed in seeds}
        for seed in seeds:
            self._check(fault_in_encoder(self.encoders[seed], dataset))
            self._check(fault_in("training", self.train[seed], dataset))
            self._check(fault_in("validation", self.validation[seed], dataset, self.train[seed][0].x.shape[1]))
            self._check(self.fault_in_weights("validation", self.validation[seed]))
        for part, make in (("training", dataset.train), ("validation", dataset.validation)):
            first = self.train if part == "training" else self.validation
            if fingerprint(make(seeds[0])) != fingerprint(first[seeds[0]]):
                raise ValueError(f"{part} data differ from call to call for the same seed: use self.rng(seed, part)")
        self.fingerprint = fingerprint(
            environment for seed in seeds for environment in (*self.train[seed], *self.validation[seed])
        )
        self._for_search: dict[tuple[int, bool, bool, int | None], SearchData] = {}

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
        `without` a training environment, that is what the models are scored on."""
        key = (seed, labelled, with_truth, without)
        if key not in self._for_search:
            train, validation = self.train[seed], self.validation[seed]
            if without is not None:
                train, validation = (*train[:without], *train[without + 1 :]), (train[without],)
            rows = pool_rows(self.dataset, train, labelled, with_truth)
            self._for_search[key] = SearchData(rows, validation)
        return self._for_search[key]


def pool_rows(
    data: Dataset, environments: Sequence[Environment], labelled: bool, with_truth: bool = False
) -> TrainingRows:
    """Training rows as a method sees them, with labels and the invariant columns only where they are needed."""
    rows = TrainingRows.pooled(environments, data.task, data.classes, labelled, data.columns)
    return replace(rows, invariant=data.invariant if with_truth else None, categories=data.categories)
