"""Chosen models in the record: folders that MLflow loads as predictors. Plain arrays and text, no pickle.

An estimator of another library is an array of bytes in that library's own format, which cannot run code either. A model
is kept with the encoder of its dataset, if that has one: it then takes raw rows.

`mlflow.pyfunc.load_model("runs:/RUN_ID/models/seed-0")` finds this module named in the folder's MLmodel file and calls
`_load_pyfunc`. The file is MLflow's documented format, and JSON is YAML: neither writing nor loading imports mlflow.
"""

from __future__ import annotations

import functools
import json
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.encoder import SCHEMA, Encoder
from oodbench.engine.data import Task
from oodbench.engine.predictor import Storable
from oodbench.errors import UnreadableRecord, UserError, one_line
from oodbench.study.document import read_document, write_document
from oodbench.study.ensemble import PREDICTION, Ensemble, Member, probability_columns
from oodbench.study.models import StoredModel, is_loadable, restore

if TYPE_CHECKING:
    import pandas as pd

ARRAYS = "model.safetensors"
MODELS = "models"  # the folder of models that were taken away
ENCODER = "encoder"  # in the description of the arrays
NO_ENCODER = "none"  # of a dataset whose rows are features already
REQUIRED = ("oodbench", "mlflow", "numpy", "safetensors")
_version = functools.cache(version)  # a study has a model per seed


def write_model(
    model: Storable,
    folder: Path,
    task: Task,
    columns: tuple[str, ...] | None,
    features: int,
    encoder: Encoder | None = None,
) -> None:
    """Into a new folder."""
    folder.mkdir(parents=True)
    write_arrays(model, folder / ARRAYS, encoder)
    if is_loadable(model):
        signature = _signature(task, columns, features) if encoder is None else raw_signature(encoder)
        write_description(folder, ARRAYS, signature, [model], encoder)


def write_arrays(model: Storable, path: Path, encoder: Encoder | None) -> None:
    """The model, and within the same file its encoder: one is wrong without the other."""
    from safetensors.numpy import save_file

    about = model.about() | {ENCODER: NO_ENCODER if encoder is None else write_document(encoder).decode()}
    save_file(model.arrays(), path, metadata=about)


def write_description(
    folder: Path,
    data: str,
    signature: Mapping[str, str | None],
    models: Sequence[Storable],
    encoder: Encoder | None,
) -> None:
    """What MLflow needs to load `data`, a file or folder in this one."""
    flavor = {"loader_module": __name__, "data": data, "python_version": platform.python_version()}
    described: dict[str, Any] = {
        "flavors": {"python_function": flavor},
        "mlflow_version": _version("mlflow"),
        "signature": signature,
        "utc_time_created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
    }
    if encoder is not None:
        described["metadata"] = {"columns": {raw.name: raw.kind for raw in encoder.raw}}
    (folder / "MLmodel").write_text(json.dumps(described, indent=2) + "\n")
    others = (name for model in models for name in model.about().get("requires", "").split(",") if name)
    required = dict.fromkeys((*REQUIRED, *others))
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


def raw_signature(encoder: Encoder) -> dict[str, str | None]:
    """Raw columns by name; a prediction, and of classes their probabilities.

    The encoder reads values of any type, and says what it cannot read; MLflow would refuse whole numbers for others.
    """
    inputs = [{"type": "any", "name": raw.name, "required": True} for raw in encoder.raw]
    predicted = {"type": "string" if encoder.classes else "double", "name": PREDICTION, "required": True}
    probabilities = [
        {"type": "double", "name": name, "required": False} for name in probability_columns(encoder.classes)
    ]
    return {"inputs": json.dumps(inputs), "outputs": json.dumps([predicted, *probabilities]), "params": None}


class StoredPredictor:
    """What `mlflow.pyfunc.load_model` wraps of a model without an encoder: values, or class numbers, or with
    params={"scores": True} their scores."""

    def __init__(self, model: StoredModel) -> None:
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

    def get_raw_model(self) -> StoredModel:
        """With `predict`, `outputs` and `losses` on arrays."""
        return self.model


class StoredEnsemble:
    """What `mlflow.pyfunc.load_model` wraps of models with encoders: a table of predictions."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble

    def predict(self, rows: Any) -> pd.DataFrame:
        return self.ensemble.predict(rows)

    def get_raw_model(self) -> Ensemble:
        return self.ensemble


def read_model(path: Path) -> StoredModel | Member:
    """A model, with the encoder that is kept with it."""
    from safetensors import safe_open

    try:
        with safe_open(path, "numpy") as stored:
            about = stored.metadata()
            arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118  (it is no dictionary)
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("it has numbers that are not finite")
        if ENCODER not in about:
            raise ValueError("another version of oodbench wrote it, without an encoder")
        model = restore(arrays, about)
        if about[ENCODER] == NO_ENCODER:
            return model
        return Member(model, read_document(Encoder, about[ENCODER].encode(), SCHEMA))
    except Exception as error:  # of a damaged file any of the parts may complain, each in its own way
        raise UnreadableRecord(
            f"the model {path} is damaged: {one_line(error)}.\nRun its study again with --fresh."
        ) from None


def load_ensemble(folder: Path) -> Ensemble:
    """All models of a folder; each has its encoder."""
    members = []
    for path in sorted(folder.glob("*.safetensors"), key=lambda path: (len(path.name), path.name)):
        member = read_model(path)
        if not isinstance(member, Member):
            raise UnreadableRecord(f"the model {path} is damaged: it has no encoder.\nExport it again.")
        members.append(member)
    if not members:
        raise UnreadableRecord(f"{folder} has no model.\nExport it again.")
    return Ensemble(tuple(members))


def _load_pyfunc(path: str) -> StoredPredictor | StoredEnsemble:
    """The door MLflow knocks at: a model, or a folder of models that were taken away."""
    if Path(path).is_dir():
        return StoredEnsemble(load_ensemble(Path(path)))
    stored = read_model(Path(path))
    return StoredEnsemble(Ensemble((stored,))) if isinstance(stored, Member) else StoredPredictor(stored)
