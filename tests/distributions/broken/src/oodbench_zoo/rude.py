"""Methods that work, and would spoil the work of others if they could."""

import numpy as np
import torch

from oodbench import Choice, Method
from oodbench_zoo.failing import Constant


class WritesThroughTorch(Method):
    def fit(self, train, hparams, seed):
        torch.from_numpy(train.x).zero_()
        torch.from_numpy(train.y).fill_(1e6)
        return ZeroesWhatItSees()


class ZeroesWhatItSees(Constant):
    def predict(self, x):
        torch.from_numpy(x).zero_()
        return super().predict(x)


class MakesRowsWritable(Method):
    def fit(self, train, hparams, seed):
        for array in (train.x, train.y):
            array.flags.writeable = True
            array[:] = 1e6
        return Constant()


class ChangesItsHparams(Method):
    space = {"value": Choice(1.0, 2.0)}

    def fit(self, train, hparams, seed):
        value = hparams.pop("value")
        hparams["value"] = np.nan
        return Constant(value)


class PrintsMegabytes(Method):
    def fit(self, train, hparams, seed):
        print("fit " * 1_000_000)
        return Talks()


class Talks(Constant):
    def predict(self, x):
        print("predict " * 10)
        return super().predict(x)


class ChangesTorch(Method):
    def fit(self, train, hparams, seed):
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return Constant()
