"""Parts of the training rows: held out for a later stage, or to say when boosting stops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import InvalidSetting
from oodbench.kit.balance import row_groups
from oodbench.kit.estimators import class_numbers

if TYPE_CHECKING:
    from oodbench.engine.data import TrainingRows
    from oodbench.engine.fitted import FittedModel
    from oodbench.engine.trainer import Objective, Trainer
    from oodbench.engine.trial import Trial

STOPPING_SHARE = 0.1  # of the training rows: their loss says when boosting stops


def hold_out(train: TrainingRows, share: float, entropy: int) -> NDArray[np.bool_]:
    """Which rows are held out: this share of every group, drawn at random. A group's last row is never held out."""
    order = np.random.default_rng(entropy).permutation(len(train))
    groups = row_groups(train)[order]
    held = np.zeros(len(train), bool)
    for group in np.unique(groups):
        members = order[groups == group]
        held[members[: min(len(members) - 1, max(1, round(share * len(members))))]] = True
    if not held.any():
        raise InvalidSetting(f"{len(train)} training rows are too few to hold some of them out.\nUse more rows.")
    return held


def fit_without_held_out(
    method: Objective, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer, share: float
) -> Iterator[tuple[Trial, NDArray[np.bool_], FittedModel]]:
    """For every trial, the rows that it holds out for a later stage, and its model of the others."""
    held = [hold_out(train[trial.seed], share, trial.entropy) for trial in trials]
    rest = [train[trial.seed].weighted((~mask).astype(float)) for trial, mask in zip(trials, held, strict=True)]
    yield from zip(trials, held, trainer.fit(method, rest, trials), strict=True)


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the training rows, as libraries take them: classes are numbered without gaps."""

    x: NDArray[np.float64]  # [row, feature]
    y: NDArray[Any]  # [row]
    weights: NDArray[np.float64] | None  # [row]


def stopping_parts(train: TrainingRows, weights: NDArray[np.float64] | None, entropy: int) -> tuple[Part, Part]:
    """Rows to fit, and a tenth of the training rows that says when to stop, with their weights [row]."""
    held = hold_out(train, STOPPING_SHARE, entropy)
    y = class_numbers(train)

    def part(rows: NDArray[np.bool_]) -> Part:
        return Part(train.x[rows], y[rows], None if weights is None else weights[rows])

    return part(~held), part(held)
