"""Networks of pytabkit as predictors: settings and tensors, from which the library builds them again.

The library keeps its estimators as pickles. Here it fits a new one, with the same settings and without training, to a
few stand-in rows; that one then gets the tensors.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import TrainingFailed
from oodbench.kit.packing import pack, unpack

ESTIMATORS = {"realmlp": "RealMLP_TD", "tabm": "TabM_D"}  # in pytabkit, with _Classifier or _Regressor behind
STANDINS = 64  # rows
OWN: dict[str, Any] = {"device": "cpu", "n_threads": 1, "n_cv": 1, "n_refit": 0, "verbosity": 0, "tmp_folder": None}
"""What no settings change, also not those of a stored model: the library reads pickles from its temporary folder."""
Table = tuple[NDArray[np.float64], NDArray[Any]]  # x [row, feature] and y [row]
Tensors = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class TabularNetwork:
    """A trained network of pytabkit without the wrapper that only a pickle could keep."""

    kind: str  # one of ESTIMATORS
    settings: Mapping[str, Any]
    features: int
    classes: int  # 0 for regression
    tensors: Tensors

    @classmethod
    def train(
        cls, kind: str, rows: Table, stopping: Table, classes: int, settings: Mapping[str, Any], entropy: int
    ) -> TabularNetwork:
        """Of rows to fit and of rows that say which epoch is best; of so many classes, or 0 for regression."""
        estimator = _estimator(kind, classes, {**settings, "random_state": entropy % 2**31})
        with _quiet():
            estimator.fit(*rows, *stopping)
        return cls(kind, settings, rows[0].shape[1], classes, _tensors(kind, estimator))

    def predict(self, x: NDArray[np.float64]) -> NDArray[Any]:
        with _quiet():
            return np.asarray(self._rebuilt.predict(x))

    def predict_proba(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        with _quiet():
            return np.asarray(self._rebuilt.predict_proba(x), np.float64)

    @cached_property
    def _rebuilt(self) -> Any:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(STANDINS, self.features)) * self.tensors.get("varies", np.ones(self.features))
        y = np.arange(STANDINS) % self.classes if self.classes else rng.normal(size=STANDINS)
        untrained = {"n_epochs": 1 if self.kind == "realmlp" else 0, "random_state": 0}
        estimator = _estimator(self.kind, self.classes, {**self.settings, **untrained})
        with _quiet():
            estimator.fit(x, y, x, y)
        _set_tensors(self.kind, estimator, self.tensors)
        return estimator

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def dump(self) -> bytes:
        about = {"settings": dict(self.settings), "features": self.features, "classes": self.classes}
        return pack(self.tensors, about)

    @classmethod
    def load(cls, kind: str, content: bytes) -> TabularNetwork:
        tensors, about = unpack(content)
        return cls(kind, about["settings"], about["features"], about["classes"], tensors)


def _estimator(kind: str, classes: int, settings: Mapping[str, Any]) -> Any:
    import pytabkit

    made = getattr(pytabkit, f"{ESTIMATORS[kind]}_{'Classifier' if classes else 'Regressor'}")
    return made(**{**settings, **OWN})


def _tensors(kind: str, estimator: Any) -> Tensors:
    """All numbers that training found."""
    tensors = {
        f"{part}.{name}": tensor.cpu().numpy().copy()
        for part, module in _modules(kind, estimator).items()
        for name, tensor in module.state_dict().items()
    }
    if kind == "realmlp":
        return tensors
    interface, quantiles = _parts_of_tabm(estimator)
    return tensors | {
        "varies": interface.num_col_mask_.numpy(),  # columns that are not constant; the network has no others
        "quantiles": quantiles.quantiles_,
        "references": quantiles.references_,
        "target": np.array([getattr(interface, "y_mean_", 0.0), getattr(interface, "y_std_", 1.0)]),
    }


def _set_tensors(kind: str, estimator: Any, tensors: Tensors) -> None:
    for part, module in _modules(kind, estimator).items():
        start = f"{part}."
        _into_module(
            module, {name.removeprefix(start): numbers for name, numbers in tensors.items() if name.startswith(start)}
        )
    if kind == "tabm":
        interface, quantiles = _parts_of_tabm(estimator)
        quantiles.quantiles_, quantiles.references_ = tensors["quantiles"], tensors["references"]
        quantiles.n_quantiles_ = len(tensors["references"])
        interface.y_mean_, interface.y_std_ = tensors["target"].tolist()


def _modules(kind: str, estimator: Any) -> dict[str, Any]:
    if kind == "tabm":
        return {"network": _parts_of_tabm(estimator)[0].model_}
    fitted = estimator.alg_interface_.model
    return {"network": fitted.model, "before": fitted.creator.static_model}  # what is not trained may be in either


def _parts_of_tabm(estimator: Any) -> tuple[Any, Any]:
    """What holds its network, and scikit-learn's transformer before it."""
    (interface,) = estimator.alg_interface_.sub_split_interfaces
    (before,) = [layer.tfms for layer in interface.tfm_.modules() if hasattr(getattr(layer, "tfms", 0), "normalizer_")]
    return interface, before.normalizer_


def _into_module(module: Any, tensors: Tensors) -> None:
    """In place of its own; tables of bins have other shapes than those of the stand-in rows, or are not there."""
    import torch

    parameters = {name for name, _ in module.named_parameters()}
    if not parameters <= set(tensors):
        raise TrainingFailed(f"the stored network has no {', '.join(sorted(parameters - set(tensors)))}.")
    for name in {name for name, _ in module.named_buffers()} | set(tensors):
        owner, _, own = name.rpartition(".")
        holder, numbers = module.get_submodule(owner), tensors.get(name)
        tensor = None if numbers is None else torch.from_numpy(numbers.copy())
        if name in parameters:
            holder.get_parameter(own).data = tensor
        else:
            holder.register_buffer(own, tensor)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The libraries print, log and warn at every training and prediction."""
    for name in ("pytorch_lightning", "lightning", "lightning.pytorch", "lightning.fabric", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
