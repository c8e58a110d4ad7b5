"""Methods that take their whole process with them."""

import ctypes
import os
import signal

from oodbench import Method


class EndsItsProcess(Method):
    def fit(self, train, hparams, seed):
        os._exit(7)


class Segfaults(Method):
    def fit(self, train, hparams, seed):
        ctypes.string_at(0)


class IsKilled(Method):
    """As by the out-of-memory killer."""

    def fit(self, train, hparams, seed):
        os.kill(os.getpid(), signal.SIGKILL)
