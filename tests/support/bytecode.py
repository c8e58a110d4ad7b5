"""Import what the tests import, once, so that Python has it compiled: a quarter of the files that pip would compile.

Tests themselves leave no bytecode: they edit modules within the second that Python tells two versions apart by.
"""

from __future__ import annotations

import importlib
import os
import sys

from warm import COMMANDS, WORKERS

OTHERS = (
    "hypothesis", "hypothesis.extra.numpy", "mlflow.server", "mlflow.sklearn", "onnx", "onnxruntime", "optuna",
    "sklearn.ensemble", "sklearn.linear_model", "sklearn.metrics", "sklearn.neighbors", "skops.io", "scipy.optimize",
    "ray._private.workers.default_worker", "ray.dashboard.dashboard", "ray.dashboard.agent", "grimp", "coverage",
    "pytest", "xdist",
)  # fmt: skip

if __name__ == "__main__":
    sys.dont_write_bytecode = False
    child = os.fork()  # one core each; what both import is compiled twice
    for name in (*WORKERS, *OTHERS) if child else COMMANDS:
        importlib.import_module(name)
    if child:
        os.waitpid(child, 0)
