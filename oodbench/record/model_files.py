"""Chosen models in the record: folders that MLflow loads as predictors. Plain arrays and text, no pickle.

An estimator of another library is an array of bytes in that library's own format, which cannot run code either.

`mlflow.pyfunc.load_model("runs:/RUN_ID/models/seed-0")` finds this module named in the folder's MLmodel file and calls
`_load_pyfunc`. The file is MLflow's documented format, and JSON is YAML: neither writing nor loading imports mlflow.
"""

from __future__ import annotations

import functools
import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.data import Task
from oodbench.engine.fitted import FittedModel
from oodbench.engine.predictor import Storable
from oodbench.errors import UnreadableRecord, UserError, one_line
from oodbench.kit.estimators import EstimatorModel
from oodbench.kit.tangent import TangentModel
from oodbench.study.models import is_loadable, restore

ARRAYS = "model.safetensors"
REQUIRED = ("oodbench", "mlflow", "numpy", "safetensors")
_version = functools.cache(version)  # a study has a model per seed


def write_model(model: Storable, folder: Path, task: Task, columns: tuple[str, ...] | None, features: int) -> None:
    """Into a new folder."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    save_file(model.arrays(), folder / ARRAYS, metadata=model.about())
    if not is_loadable(model):
        return
    flavor = {"loader_module": __name__, "data": ARRAYS, "python_version": platform.python_version()}
    described = {
        "flavors": {"python_function": flavor},
        "mlflow_version": _version("mlflow"),
        "signature": _signature(task, columns, features),
        "utc_time_created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
    }
    (folder / "MLmodel").write_text(json.dumps(described, indent=2) + "\n")
    required = (*REQUIRED, *filter(None, model.about().get("requires", "").split(",")))
    (folder / "requirements.txt").write_text("".join(f"{_pin(name)}\n" for name in required))


@functools.cache
def _pin(name: str) -> str:
    try:
        return f"{name}=={version(name)}"
    except PackageNotFoundError:  # another distribution brings the module: xgboost-cpu
        other = packages_distributions()[name][0]
        return f"{other}=={version(other)}"


def feature_columns(columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """In MLflow's words."""
    return [{"type": "double", "name": name, "required": True} for name in columns]


def _signature(task: Task, columns: tuple[str, ...] | None, features: int) -> dict[str, str | None]:
    """Columns by name where they have names, else an array of that width; scores of classes where they are wanted."""
    array = {"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, features]}}
    classes = task == "classification"
    scores = {"name": "scores", "type": "boolean", "default": False, "shape": None}
    return {
        "inputs": json.dumps(feature_columns(columns) if columns else [array]),
        "outputs": json.dumps([{"type": "long" if classes else "double", "required": True}]),
        "params": json.dumps([scores]) if classes else None,
    }


class StoredPredictor:
    """What `mlflow.pyfunc.load_model` wraps: values, or class numbers, or with params={"scores": True} their scores."""

    def __init__(self, model: FittedModel | TangentModel | EstimatorModel) -> None:
        self.model = model

    def predict(self, rows: Any, params: Mapping[str, Any] | None = None) -> NDArray[Any]:
        x = np.ascontiguousarray(rows, dtype=np.float64)  # a table's columns lie otherwise, and would round otherwise
        try:
            return self.model.outputs(x) if (params or {}).get("scores") else self.model.predict(x)
        except (ValueError, IndexError) as error:
            raise UserError(
                f"the model does not take rows of shape {x.shape}: {one_line(error)}.\n"
                "Give the columns that it was trained on; if these are they, run its study again with --fresh."
            ) from None

    def get_raw_model(self) -> FittedModel | TangentModel | EstimatorModel:
        """With `predict`, `outputs` and `losses` on arrays."""
        return self.model


def _load_pyfunc(path: str) -> StoredPredictor:
    """The door MLflow knocks at."""
    from safetensors import safe_open

    try:
        with safe_open(path, "numpy") as stored:
            about = stored.metadata()
            arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (it is no dictionary)
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("it has numbers that are not finite")
        return StoredPredictor(restore(arrays, about))
    except Exception as error:  # of a damaged file any of the parts may complain, each in its own way
        raise UnreadableRecord(
            f"the model {path} is damaged: {one_line(error)}.\nRun its study again with --fresh."
        ) from None
