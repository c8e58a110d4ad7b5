"""Methods that are found out at work."""

import sys
import threading

import numpy as np

from oodbench import LossMethod, Method


class Constant:
    def __init__(self, value=0.0):
        self.value = value

    def predict(self, x):
        return np.full(len(x), self.value)


class FitRaises(Method):
    def fit(self, train, hparams, seed):
        raise ValueError("no such luck\nand more of it")


class FitReturnsNone(Method):
    def fit(self, train, hparams, seed):
        return None


class FitReturnsAnObject(Method):
    def fit(self, train, hparams, seed):
        return object()


class TooFewPredictors(Method):
    def fit_pack(self, train, trials, trainer):
        return []


class PredictsNan(Method, Constant):
    def fit(self, train, hparams, seed):
        return Constant(np.nan)


class PredictsHuge(Method):
    def fit(self, train, hparams, seed):
        return Constant(1e200)


class PredictsATable(Method, Constant):
    def fit(self, train, hparams, seed):
        return self

    def predict(self, x):
        return np.zeros((len(x), 2))


class PredictsText(Method, Constant):
    def fit(self, train, hparams, seed):
        return Constant("yes")


class PredictsComplex(Method, Constant):
    def fit(self, train, hparams, seed):
        return Constant(1 + 1j)


class PredictRaisesOnTest(Method):
    """Fine in validation, not in the sealed evaluation."""

    def fit(self, train, hparams, seed):
        return OnlySmall()


class OnlySmall(Constant):
    def predict(self, x):
        if len(x) == 25:  # a test environment
            raise KeyError("unseen")
        return super().predict(x)


class WritesTrainingRows(Method):
    def fit(self, train, hparams, seed):
        train.x[:] = 0
        return Constant()


class ExitsInFit(Method):
    def fit(self, train, hparams, seed):
        sys.exit(3)


class ExitsInPredict(Method):
    def fit(self, train, hparams, seed):
        return Exits()


class Exits:
    def predict(self, x):
        sys.exit(3)


class CannotTravel(Method):
    def __init__(self):
        self.lock = threading.Lock()

    def fit(self, train, hparams, seed):
        return Constant()


class PredictorCannotTravel(Method):
    def fit(self, train, hparams, seed):
        predictor = Constant()
        predictor.lock = threading.Lock()
        return predictor


class PredictorDoesNotArrive(Method):
    def fit(self, train, hparams, seed):
        return Unopenable()


class Unopenable(Constant):
    def __setstate__(self, state):
        raise RuntimeError("opened elsewhere")


class LossIsNan(LossMethod):
    def loss(self, rows, hp):
        return rows.losses.mean(-1) * float("nan")


class LossOfTheWrongShape(LossMethod):
    def loss(self, rows, hp):
        return rows.losses


class LossWithoutTheModel(LossMethod):
    def loss(self, rows, hp):
        return rows.y.float().mean(-1)


class LossIsANumber(LossMethod):
    def loss(self, rows, hp):
        return 1.0
