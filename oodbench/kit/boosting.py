"""Boosted trees of any library: how their rows are weighted, and when they stop, is the same for all.

The option `weights` brings reweighting and JTT (Liu et al. 2021) to them. Differs from the method `jtt`: the first of
the two trainings ends when its loss on held-out rows no longer falls, not after a share of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import InvalidSetting
from oodbench.kit.balance import GROUPINGS, balanced_weights, row_groups
from oodbench.kit.estimators import EstimatorModel
from oodbench.kit.parts import Part, stopping_parts
from oodbench.settings.space import Dimension, LogUniform, Option

if TYPE_CHECKING:
    from oodbench.engine.data import TrainingRows

BOOSTING_OPTIONS: Mapping[str, Dimension] = {
    "weights": Option("none", *GROUPINGS, "jtt"),
    "upweight": LogUniform(1.0, 10**2.5, default=10.0, searched=False),
}
"""How rows are weighted: for the search space of a method."""

BOOSTING_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "environment": {"about": "every environment counts the same", "fix": {"weights": "environment"}},
    "class": {"about": "every class counts the same", "fix": {"weights": "class"}},
    "both": {"about": "every class within every environment counts the same", "fix": {"weights": "both"}},
    "jtt": {
        "about": "trained twice, the second time with the errors of the first upweighted",
        "fix": {"weights": "jtt", "upweight": (3.0, 10.0, 30.0, 100.0)},
    },
}
"""One for each way to weigh the rows, so that a board can have several: for `Preset`."""


def check_weights(train: TrainingRows, hparams: Mapping[str, Any]) -> None:
    """Refuse weights that need classes (option `weights`) where there are none."""
    if train.task != "classification" and hparams["weights"] not in ("none", "environment"):
        raise InvalidSetting(f"weights={hparams['weights']} is for classification.\nUse weights=environment or none.")


def needs_of_weights(hparams: Mapping[str, Any]) -> frozenset[str]:
    """What a method with the option `weights` needs to be told."""
    return frozenset({"environments"}) if hparams["weights"] in ("environment", "both") else frozenset()


def fit_boosting(
    grow: Callable[[Part, Part, dict[str, Any]], Any],
    library: str,
    train: TrainingRows,
    hparams: Mapping[str, Any],
    seed: int,
) -> EstimatorModel:
    """The estimator that `grow(rows, stopping, own)` fits to rows, weighted as the option `weights` asks.

    `stopping` is a tenth of the training rows, whose loss says when to stop, weighted alike; `own` are the
    hyper-parameters of the library. The weights that `train` has already are kept, as factors.
    """
    own = {name: value for name, value in hparams.items() if name not in BOOSTING_OPTIONS}

    def fit(weights: NDArray[np.float64] | None) -> EstimatorModel:
        estimator = grow(*stopping_parts(train, _product(weights, train.weights), seed), own)
        return EstimatorModel.wrap(estimator, library, train)

    how = hparams["weights"]
    model = fit(balanced_weights(row_groups(train, how), train.weights) if how in GROUPINGS else None)
    if how == "jtt":
        model = fit(np.where(model.predict(train.x) != train.y, float(hparams["upweight"]), 1.0))
    return model


def _product(weights: NDArray[np.float64] | None, others: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    if weights is None or others is None:
        return others if weights is None else weights
    return weights * others
