"""The chosen models of a study: which of them the record can keep, and which can be loaded again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from oodbench.engine.fitted import FittedModel
from oodbench.engine.models import FAMILIES
from oodbench.engine.predictor import Storable
from oodbench.kit.estimators import FORMATS, EstimatorModel
from oodbench.kit.tangent import TangentModel
from oodbench.study.record import Kept

if TYPE_CHECKING:
    from oodbench.engine.predictor import Predictor

LOADABLE: dict[str, type[FittedModel] | type[TangentModel] | type[EstimatorModel]] = {
    **dict.fromkeys(FAMILIES, FittedModel),
    **dict.fromkeys(FORMATS, EstimatorModel),
    "tangent": TangentModel,
}
"""By family, what restores a model from its arrays."""


def is_loadable(model: Storable) -> bool:
    """A plug-in's own kind of model is kept as arrays alone, which only the plug-in can use."""
    return model.about().get("family") in LOADABLE


def storable(models: Mapping[int, Predictor]) -> dict[int, Storable]:
    """Those of the models, by seed, that the record can keep."""
    return {seed: model for seed, model in models.items() if isinstance(model, Storable) and model.arrays()}


def how_kept(models: Mapping[int, Predictor]) -> Kept:
    kept = storable(models)
    if not kept or len(kept) < len(models):
        return "nothing"
    return "loadable" if all(map(is_loadable, kept.values())) else "arrays"
