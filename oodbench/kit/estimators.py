"""Estimators of other libraries as predictors, kept in formats that cannot run code when they are loaded."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import InvalidSetting, TrainingFailed
from oodbench.kit.pytabkit import TabularNetwork
from oodbench.kit.tabicl import InContextRows

if TYPE_CHECKING:
    from oodbench.engine.data import TrainingRows

TRUSTED = "sklearn."  # skops rebuilds classes of this package only, beside what it has audited itself
LEAST_PROBABILITY = 1e-7  # a class that is ruled out has a finite log loss


@dataclass(frozen=True, eq=False)
class EstimatorModel:
    """A fitted estimator as a predictor. It takes and gives its own numbering of the classes: 0, 1, ... in `labels`."""

    estimator: Any
    library: str
    labels: NDArray[np.int64]  # the classes that it saw; empty for regression
    classes: int

    @classmethod
    def wrap(cls, estimator: Any, library: str, train: TrainingRows) -> EstimatorModel:
        """Of an estimator that was fitted to `class_numbers(train)`, or to the values of a regression."""
        return cls(estimator, library, labels_of(train), train.classes)

    def predict(self, x: NDArray[np.float64]) -> NDArray[Any]:
        """Values, or class numbers. [row]"""
        predicted = self._said("predict", x).reshape(len(x))
        return self.labels[predicted.astype(np.int64)] if len(self.labels) else predicted.astype(np.float64)

    def outputs(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value; or a probability per class, or where the estimator has none, 1 for the predicted class."""
        if not len(self.labels):
            return self.predict(x)[:, None]
        outputs = np.zeros((len(x), self.classes))
        if hasattr(self.estimator, "predict_proba"):
            outputs[:, self.labels] = self._said("predict_proba", x)
        else:
            outputs[np.arange(len(x)), self.predict(x)] = 1.0
        return outputs

    def predict_proba(self, x: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Of a classifier, its probabilities [row, class]; None where the estimator has none."""
        return self.outputs(x) if hasattr(self.estimator, "predict_proba") else None

    def losses(self, x: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.float64]:
        """Squared errors, log losses, or where the estimator has no probabilities, 1 for a wrong class. [row]"""
        losses: NDArray[np.float64]
        if not len(self.labels):
            losses = np.square(self.predict(x) - y)
        else:
            chosen = self.outputs(x)[np.arange(len(x)), y]
            has_probabilities = hasattr(self.estimator, "predict_proba")
            losses = -np.log(np.maximum(chosen, LEAST_PROBABILITY)) if has_probabilities else 1.0 - chosen
        return losses

    def _said(self, door: str, x: NDArray[np.float64]) -> NDArray[Any]:
        """What the estimator says of the rows. Scores, losses and metrics ask about the same ones: it works once."""
        rows = hashlib.sha1(np.ascontiguousarray(x).data, usedforsecurity=False).digest(), x.shape
        known, said = self._last.get(door, (None, None))
        if said is None or known != rows:
            with one_thread():
                said = np.asarray(getattr(self.estimator, door)(x))
            self._last[door] = rows, said
        return said

    @cached_property
    def _last(self) -> dict[str, tuple[Any, NDArray[Any]]]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_last"}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The estimator in its library's own format, as bytes; empty where it has types that would not be trusted."""
        if self._content is None:
            return {}
        return {"content": np.frombuffer(self._content, np.uint8), "labels": self.labels}

    def about(self) -> dict[str, str]:
        return {"family": self.library, "classes": str(self.classes), "requires": FORMATS[self.library].requires}

    @classmethod
    def restore(cls, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, str]) -> EstimatorModel:
        """What `arrays` and `about` were made of."""
        labels = arrays["labels"]
        estimator = FORMATS[about["family"]].load(arrays["content"].tobytes(), bool(len(labels)))
        return cls(estimator, about["family"], labels, int(about["classes"]))

    @cached_property
    def _content(self) -> bytes | None:
        return FORMATS[self.library].dump(self.estimator)


def labels_of(train: TrainingRows) -> NDArray[np.int64]:
    """The classes that training rows have; none for a regression."""
    return np.unique(train.y).astype(np.int64) if train.task == "classification" else np.empty(0, np.int64)


def class_numbers(train: TrainingRows) -> NDArray[Any]:
    """The targets as libraries want them: classes without gaps, 0, 1, ...; the values of a regression."""
    return np.searchsorted(labels_of(train), train.y) if train.task == "classification" else train.y


def require(library: str, method: str = "") -> None:
    """Say how to install an optional library that is not there; the method may have another name."""
    if find_spec(library) is None:
        raise InvalidSetting(
            f"method {(method or library)!r} needs {library}, which is not installed.\n"
            f"Install it with `pip install 'oodbench[{library}]'`."
        )


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for the estimators of other libraries: the workers of a search share the cores already."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


# ---- formats


@dataclass(frozen=True)
class Format:
    """How a library keeps an estimator: never as a pickle."""

    requires: str  # packages, with commas
    dump: Callable[[Any], bytes | None]
    load: Callable[[bytes, bool], Any]  # (content, whether it is a classifier)


def _dump_sklearn(estimator: Any) -> bytes | None:
    import skops.io

    try:
        content: bytes = skops.io.dumps(estimator)
    except Exception:  # whatever a plug-in's estimator holds that has no safe form
        return None
    return content if not _untrusted(content) else None


def _load_sklearn(content: bytes, classifier: bool) -> Any:
    import skops.io

    if _untrusted(content):
        raise TrainingFailed(f"the stored model has types that are not trusted: {', '.join(_untrusted(content))}.")
    return skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))


def _untrusted(content: bytes) -> list[str]:
    import skops.io

    return [name for name in skops.io.get_untrusted_types(data=content) if not _is_trusted(name)]


def _is_trusted(name: str) -> bool:
    """A class: a function might be called by an estimator that holds it."""
    module, _, attribute = name.rpartition(".")
    return name.startswith(TRUSTED) and inspect.isclass(getattr(importlib.import_module(module), attribute, None))


def _load_xgboost(content: bytes, classifier: bool) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    estimator = XGBClassifier(n_jobs=1) if classifier else XGBRegressor(n_jobs=1)
    estimator.load_model(bytearray(content))
    return estimator


@dataclass(frozen=True, eq=False)
class LightGBMTrees:
    """LightGBM's trees without the wrapper that only a pickle could keep."""

    trees: str
    classifier: bool

    def predict(self, x: NDArray[np.float64]) -> NDArray[Any]:
        return self.predict_proba(x).argmax(1) if self.classifier else self._raw(x)

    def predict_proba(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        raw = self._raw(x)
        return raw if raw.ndim == 2 else np.column_stack([1 - raw, raw])

    def _raw(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._booster.predict(x, num_threads=1))

    @cached_property
    def _booster(self) -> Any:
        from lightgbm import Booster

        return Booster(model_str=self.trees)

    def __getstate__(self) -> dict[str, Any]:
        return {"trees": self.trees, "classifier": self.classifier}


def _dump_catboost(estimator: Any) -> bytes:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.cbm")
        estimator.save_model(str(path), format="cbm")
        return path.read_bytes()


def _load_catboost(content: bytes, classifier: bool) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    return (CatBoostClassifier() if classifier else CatBoostRegressor()).load_model(blob=content)


FORMATS = {
    "sklearn": Format("scikit-learn,skops", _dump_sklearn, _load_sklearn),
    "xgboost": Format("xgboost", lambda estimator: bytes(estimator.get_booster().save_raw("ubj")), _load_xgboost),
    "lightgbm": Format(
        "lightgbm",
        lambda trees: trees.trees.encode(),
        lambda content, classifier: LightGBMTrees(content.decode(), classifier),
    ),
    "catboost": Format("catboost", _dump_catboost, _load_catboost),
    "realmlp": Format("pytabkit", TabularNetwork.dump, lambda content, _: TabularNetwork.load("realmlp", content)),
    "tabm": Format("pytabkit", TabularNetwork.dump, lambda content, _: TabularNetwork.load("tabm", content)),
    "tabicl": Format("tabicl", InContextRows.dump, lambda content, _: InContextRows.load(content)),
}
"""By library, or where a library has several, by estimator."""
