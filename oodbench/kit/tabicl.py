"""Predictors of TabICL: training rows, and which weights read them. The library fits again when one is loaded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import InvalidSetting, TrainingFailed
from oodbench.kit.packing import pack, unpack

VARIABLE = "OODBENCH_TABICL"
REPOSITORY = "jingang/TabICL"  # on the Hugging Face hub


@dataclass(frozen=True, eq=False)
class InContextRows:
    """Training rows as a predictor. Nothing is trained: the weights are the same for all rows, and are not kept."""

    x: NDArray[np.float64]  # [row, feature]
    y: NDArray[Any]  # [row]
    settings: Mapping[str, Any]
    classifier: bool
    weights: str  # SHA-256 of their file

    @classmethod
    def of(
        cls, x: NDArray[np.float64], y: NDArray[Any], settings: Mapping[str, Any], classifier: bool
    ) -> InContextRows:
        """With the weights of this machine."""
        return cls(x, y, settings, classifier, _sha256(find_weights(classifier)))

    def predict(self, x: NDArray[np.float64]) -> NDArray[Any]:
        return np.asarray(self._estimator.predict(x))

    def predict_proba(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._estimator.predict_proba(x), np.float64)

    @cached_property
    def _estimator(self) -> Any:
        path = find_weights(self.classifier)
        if _sha256(path) != self.weights:
            raise TrainingFailed(f"the weights {path.name} are not those of this predictor: their SHA-256 differ.")
        own = {"model_path": path, "allow_auto_download": False, "device": "cpu", "n_jobs": 1, "verbose": False}
        return _class(self.classifier)(**{**self.settings, **own}).fit(self.x, self.y)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def dump(self) -> bytes:
        about = {"settings": dict(self.settings), "classifier": self.classifier, "weights": self.weights}
        return pack({"x": self.x, "y": self.y}, about)

    @classmethod
    def load(cls, content: bytes) -> InContextRows:
        rows, about = unpack(content)
        return cls(rows["x"], rows["y"], about["settings"], about["classifier"], about["weights"])


def find_weights(classifier: bool) -> Path:
    """The file of the library's current weights: in the folder that the variable names, or in the hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    name = str(_class(classifier)().checkpoint_version)
    path = Path(os.environ[VARIABLE], name) if os.environ.get(VARIABLE) else try_to_load_from_cache(REPOSITORY, name)
    if isinstance(path, str | Path) and Path(path).is_file():
        return Path(path)
    raise InvalidSetting(
        f"method 'tabicl' needs the weights {name}, which are not on this machine.\n"
        f"Run `hf download {REPOSITORY} {name}`, or set {VARIABLE} to a folder that has the file."
    )


def _class(classifier: bool) -> Any:
    import tabicl

    return tabicl.TabICLClassifier if classifier else tabicl.TabICLRegressor


def _sha256(path: Path) -> str:
    return _sha256_of(path, path.stat().st_mtime_ns)


@cache
def _sha256_of(path: Path, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
