"""The chosen models of a study: which of them the record can keep, and which can be loaded again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from oodbench.engine.fitted import FittedModel
from oodbench.engine.predictor import Storable
from oodbench.kit.estimators import FORMATS, EstimatorModel
from oodbench.kit.tangent import TangentModel
from oodbench.plugin.registry import find, names
from oodbench.study.record import Kept

if TYPE_CHECKING:
    from oodbench.engine.predictor import Predictor

TANGENT = "tangent"

StoredModel = FittedModel | TangentModel | EstimatorModel
"""What can be loaded again."""


def is_loadable(model: Storable) -> bool:
    """A kind of model that is not installed under a name is kept as arrays alone, which only its author can use."""
    family = model.about().get("family")
    return family == TANGENT or family in FORMATS or family in names("model")


def restore(arrays: Mapping[str, NDArray[Any]], about: Mapping[str, str]) -> StoredModel:
    """The model of which these are the arrays and the description."""
    if about["family"] == TANGENT:
        return TangentModel.restore(arrays, about)
    if about["family"] in FORMATS:
        return EstimatorModel.restore(arrays, about)
    return FittedModel.restore(arrays, about, find("model", about["family"]))


def count_classes(model: StoredModel) -> int:
    """0 for a regression."""
    if isinstance(model, EstimatorModel):
        return model.classes if len(model.labels) else 0
    outputs = model.width if isinstance(model, FittedModel) else len(model.constant)
    return max(2, outputs) if model.classification else 0


def storable(models: Mapping[int, Predictor]) -> dict[int, Storable]:
    """Those of the models, by seed, that the record can keep."""
    return {seed: model for seed, model in models.items() if isinstance(model, Storable) and model.arrays()}


def how_kept(models: Mapping[int, Predictor]) -> Kept:
    kept = storable(models)
    if not kept or len(kept) < len(models):
        return "nothing"
    return "loadable" if all(map(is_loadable, kept.values())) else "arrays"
