"""Environments that are inferred: the split of the rows under which a reference model is least invariant.

It maximizes IRM's penalty of the reference, summed over rows as in EIIL's code (Creager et al. 2021), by alternation
rather than by 10,000 gradient steps. The CPU does this between two trainings, in double precision: of what is on a GPU
it needs the parameters of the reference alone, which are fetched when that is trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.torch_model import TorchModel

if TYPE_CHECKING:
    from torch import Tensor

    from oodbench.engine.data import TrainingRows
    from oodbench.engine.fitted import FittedModel

MOST_ROUNDS = 100


def infer_environments(reference: FittedModel, rows: TrainingRows, single: bool = False) -> NDArray[np.int64]:
    """0 or 1 for each row: on which side it pulls the factors of the reference.

    For classes a single factor of the outputs, where it is the sign of each row's slope; in regression a factor of
    each input of the last layer, or with `single` one of the outputs too.
    """
    import torch

    layered = not isinstance(reference.model, TorchModel)
    if layered and not (reference.classification or single):
        return split_slopes(factor_slopes(reference, rows), rows.weights)
    outputs = torch.from_numpy(reference.forward(rows.x)).unsqueeze(0)
    y = torch.tensor(rows.y, dtype=torch.long if reference.classification else torch.float32).unsqueeze(0)
    slopes = reference.recipe.row_slopes(outputs, y)[0]
    return (slopes > 0).long().numpy()


def factor_slopes(reference: FittedModel, rows: TrainingRows) -> NDArray[np.float64]:
    """How each row's loss changes with a factor of each input of the last layer, at factors 1: [row, input]."""
    import torch

    model, features = reference.model, rows.x.shape[1]
    pieces = model.pieces(torch.tensor(reference.parameters).unsqueeze(0), features, 1)
    columns = model.columns(torch.tensor(rows.x.T, dtype=torch.float32).unsqueeze(0))
    inputs: Tensor = model.represent(pieces, columns)[0]  # [input, row]
    parts = inputs * pieces[-1][0, : len(inputs)].unsqueeze(1)  # of the output, without a later layer's bias
    residuals = reference.predict(rows.x) - rows.y
    slopes: NDArray[np.float64] = 2 * residuals[:, None] * parts.T.double().numpy()
    return slopes


def split_slopes(slopes: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> NDArray[np.int64]:
    """The two parts of slopes [row, k] whose sums, under weights [row], are largest in square: a plane through 0
    divides the best ones.

    Alternates between the plane and the sums of its sides, from several planes; what is best is kept.
    """
    counted = slopes if weights is None else slopes * weights[:, None]
    starts = np.column_stack([np.ones(slopes.shape[1]), np.linalg.eigh(counted.T @ slopes)[1]])  # [k, start]
    side = slopes @ starts > 0  # [row, start]: all starts are one product
    for _ in range(MOST_ROUNDS):
        before, side = side, slopes @ (counted.T @ (2.0 * side - 1)) > 0
        if np.array_equal(before, side):
            break
    sums = counted.T @ side
    others = counted.sum(0)[:, None] - sums
    best = int(np.argmax(np.square(sums).sum(0) + np.square(others).sum(0)))
    return np.asarray(side[:, best], np.int64)
