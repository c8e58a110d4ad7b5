"""Invariant risk minimization of least squares with a matrix as representation, as its authors' linear experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oodbench import LogUniform, LossMethod, Predictor, Setup, Trainer, TrainingRows, Trial, Value
from oodbench.kit import MOST_TRIALS, check_environments, fit_matrix_irm


class IRMMatrix(LossMethod):
    """IRM with a matrix as representation (Arjovsky et al. 2019, section 5.1): linear regression without a constant.

    A matrix M, at first the identity, maps the columns, and a vector of ones sums them up. The objective is the risks
    and `penalty` times the mean squared gradients by that vector, both summed over environments. It asks as many
    gradients to vanish as there are columns, where `irm` asks one. The model of the study is not used, nor are batches.
    """

    tasks = ("regression",)
    needs = frozenset({"environments"})
    space = {"penalty": LogUniform(1e0, 1e5, default=100.0)}
    on_gpu = False
    takes_weights = True

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        check_environments(train)

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        return list(fit_matrix_irm(train, trials, trainer))

    def pack_capacity(self, rows: int, outputs: int, setup: Setup) -> int:
        return MOST_TRIALS
