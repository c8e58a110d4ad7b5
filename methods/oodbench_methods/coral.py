"""Correlation alignment: equal means and covariances of the representation in all environments."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor, TrainingRows, Value
from oodbench.kit import check_environments, covariances, equal_shares, mean_over_pairs, mean_risk, multiply


class CORAL(LossMethod):
    """Deep CORAL (Sun & Saenko 2016): the mean risk, and the mean squared differences of means and covariances of what
    the last layer sees between two environments; of the outputs for a linear model, whose last layer sees x itself."""

    needs = frozenset({"environments"})
    space = {"penalty": LogUniform(1e-1, 1e1, default=1.0)}

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        from torch import cat

        means = multiply(rows.environments, rows.learned.mT)  # [trial, environment, unit]
        spreads = covariances(rows.learned, rows.environments)  # [trial, environment, unit, unit]
        flat = cat([means / means.shape[-1] ** 0.5, spreads.flatten(2) / means.shape[-1]], -1)
        gaps = (flat.unsqueeze(1) - flat.unsqueeze(2)).square().sum(-1)  # [trial, environment, environment]
        penalty: Tensor = hp.penalty * mean_over_pairs(gaps, equal_shares(rows))
        return mean_risk(rows) + penalty
