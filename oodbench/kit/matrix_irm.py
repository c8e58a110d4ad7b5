"""IRM with a matrix of columns before a vector of ones, for least squares: on moments of the rows, so quick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.fitted import FittedModel
from oodbench.engine.models import Linear

if TYPE_CHECKING:
    from oodbench.engine.data import TrainingRows
    from oodbench.engine.trainer import Trainer
    from oodbench.engine.trial import Trial


def fit_matrix_irm(train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[FittedModel]:
    """Linear models without a constant, with coefficients M w, where w is ones and M begins as the identity.

    M minimises (risks + penalty gaps) / (1 + penalty): both are summed over environments, and gaps are the mean
    squares of the gradient of a risk by w. With b = M w, a risk is b'G b - 2 c'b and a constant: G and c are all that
    the steps need of the rows.
    """
    import torch

    def per_trial(values: Mapping[int, NDArray[np.float64]]) -> torch.Tensor:
        return torch.tensor(np.stack([values[trial.seed] for trial in trials]), dtype=torch.float32)

    products, targets = {}, {}
    for seed, rows in train.items():
        environment = np.asarray(rows.environment)
        weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        shares = [np.where(environment == number, weights, 0) for number in np.unique(environment)]  # [row] each
        products[seed] = np.stack([(rows.x.T * share) @ rows.x / share.sum() for share in shares])
        targets[seed] = np.stack([(rows.x.T * share) @ rows.y / share.sum() for share in shares])
    g, c = per_trial(products), per_trial(targets)  # [trial, environment, column, column], [trial, environment, column]
    columns = g.shape[-1]
    penalty, rate, decay = (
        torch.tensor([float(trial.hparams[name]) for trial in trials])
        for name in ("penalty", "learning_rate", "weight_decay")
    )
    share = (penalty / (1 + penalty)).view(-1, 1)
    matrix = torch.eye(columns).repeat(len(trials), 1, 1)  # [trial, column, unit]
    optimizer = trainer.optimizer("adam", matrix, rate, decay, rows=len(next(iter(train.values())).x))
    for _ in range(trainer.setup.recipe.steps):
        slopes = 2 * ((g @ matrix.sum(2).view(-1, 1, columns, 1)).squeeze(3) - c)  # of each risk by b
        gaps = slopes @ matrix  # by w: [trial, environment, unit]
        curved = (g @ (matrix.unsqueeze(1) @ gaps.unsqueeze(3))).squeeze(3).sum(1)
        by_b = (1 - share) * slopes.sum(1) + share * 4 / columns * curved
        direct = (2 / columns) * slopes.mT @ gaps
        optimizer.step(by_b.unsqueeze(2) + share.unsqueeze(2) * direct)
    found = matrix.sum(2).numpy()
    return [FittedModel(Linear(intercept=False), trainer.setup.recipe, 1, False, own.copy()) for own in found]
