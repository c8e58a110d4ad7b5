"""Datasets that are broken."""

import itertools
from dataclasses import dataclass

import numpy as np

from oodbench import Dataset, Environment

_calls = itertools.count()


@dataclass(frozen=True)
class Sound(Dataset):
    """Nothing is wrong with this one."""

    task = "regression"

    def rows(self, seed, part, name="a", columns=2):
        rng = self.rng(seed, part)
        x = rng.normal(size=(30, columns))
        return Environment(name, x, x[:, 0] + rng.normal(size=30))

    def train(self, seed):
        return [self.rows(seed, "train")]

    def validation(self, seed):
        return [self.rows(seed, "validation")]

    def test(self, seed):
        return [self.rows(seed, "test")]


@dataclass(frozen=True)
class HasNan(Sound):
    def train(self, seed):
        return [Environment("a", np.full((30, 2), np.nan), np.zeros(30))]


@dataclass(frozen=True)
class OneClass(Sound):
    task = "classification"

    def train(self, seed):
        return [Environment("a", self.rows(seed, "train").x, np.zeros(30, int))]

    validation = train


@dataclass(frozen=True)
class OtherColumns(Sound):
    def train(self, seed):
        return [self.rows(seed, "train"), self.rows(seed, "train", "b", columns=3)]


@dataclass(frozen=True)
class OtherColumnsInValidation(Sound):
    def validation(self, seed):
        return [self.rows(seed, "validation", columns=3)]


@dataclass(frozen=True)
class EmptyEnvironment(Sound):
    def train(self, seed):
        return [Environment("a", np.zeros((0, 2)), np.zeros(0))]


@dataclass(frozen=True)
class NoTraining(Sound):
    def train(self, seed):
        return []


@dataclass(frozen=True)
class NotEnvironments(Sound):
    def train(self, seed):
        return [(np.zeros((30, 2)), np.zeros(30))]


@dataclass(frozen=True)
class ValidationChanges(Sound):
    def validation(self, seed):
        return [self.rows(next(_calls), "validation")]


@dataclass(frozen=True)
class TrainRaises(Sound):
    def train(self, seed):
        raise FileNotFoundError("rows.csv")


@dataclass(frozen=True)
class TrainExits(Sound):
    def train(self, seed):
        raise SystemExit(9)


@dataclass(frozen=True)
class FactsAreText(Sound):
    facts = {"alpha0": "a tenth"}


@dataclass(frozen=True)
class NoTest(Sound):
    def test(self, seed):
        return []


@dataclass(frozen=True)
class NanInTest(Sound):
    def test(self, seed):
        return [Environment("a", np.full((30, 2), np.nan), np.zeros(30))]


@dataclass(frozen=True)
class TestRaises(Sound):
    def test(self, seed):
        raise FileNotFoundError("test.csv")
