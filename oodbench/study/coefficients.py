"""How far the coefficients of linear models are from the true ones, where the dataset knows these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from oodbench.engine.fitted import FittedModel
from oodbench.engine.models import Linear
from oodbench.errors import StudyFailed
from oodbench.study.record import COEFFICIENTS, Chosen

if TYPE_CHECKING:
    from oodbench.engine.predictor import Predictor
    from oodbench.study.study import Study


def score_coefficients(study: Study, models: Mapping[int, Predictor], choice: Chosen) -> list[dict[str, Any]]:
    """Result rows with the mean squared error of the causal coefficients, and of those that are truly zero."""
    rows = []
    for seed, model in models.items():
        given = study.dataset.coefficients(seed)
        if given is None or not isinstance(model, FittedModel) or not isinstance(model.model, Linear):
            continue
        true = np.asarray(given, np.float64)  # a plug-in may give a list
        features = study.data.train[seed][0].x.shape[1]
        if true.shape != (features,):
            raise StudyFailed(f"coefficients must be {features} numbers, one for each column, not {true.shape}")
        of_units = model.predict(np.vstack([np.eye(features), np.zeros(features)]))
        squares = np.square(of_units[:-1] - of_units[-1] - true)
        for name, places in (("causal", true != 0), ("noncausal", true == 0)):
            if places.any():
                where = {"configuration": choice.of_seed(seed), "seed": seed, "part": COEFFICIENTS}
                rows.append(
                    where | {"environment": name, "rows": int(places.sum()), "error": float(squares[places].mean())}
                )
    return rows
