"""Methods that can be imported, and are found out before anything starts."""

from oodbench import LossMethod, Method


class _Trains(LossMethod):
    def loss(self, rows, hp):
        return rows.losses.mean(-1)


class NotAMethod:
    pass


def a_function():
    pass


class SpaceIsAList(_Trains):
    space = ["penalty"]


class SpaceOfNumbers(_Trains):
    space = {"penalty": 3.0}


class WantsTestData(_Trains):
    needs = {"test"}


class UnknownTask(_Trains):
    tasks = ("ranking",)


class CheckRaises(_Trains):
    def check(self, train, hparams):
        raise KeyError("penalty")


class NoCapacity(_Trains):
    def pack_capacity(self, rows, outputs, setup):
        return None


class ExitsWhenMade(Method):
    def __init__(self):
        raise SystemExit(5)

    def fit(self, train, hparams, seed):
        raise AssertionError
