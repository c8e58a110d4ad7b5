"""Environment inference for invariant learning: split the rows where a reference model is least invariant, then IRM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from oodbench import FittedModel, Predictor, Trainer, TrainingRows, Trial
from oodbench.kit import fit_references
from oodbench_methods.erm import ERM
from oodbench_methods.irm import IRM


class EIIL(IRM):
    """Environment inference for invariant learning (Creager et al. 2021), with IRM on what it infers.

    The split that maximizes IRM's penalty of the reference, summed over rows as in the authors' code, is the sign
    of each row's slope; it is taken in closed form rather than by 10,000 gradient steps.
    """

    needs = frozenset()

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        references = fit_references(ERM(), train, trials, trainer)
        split = {
            seed: replace(train[seed], environment=infer_environments(references[seed], train[seed]))
            for seed in references
        }
        return super().fit_pack(split, trials, trainer)


def infer_environments(reference: FittedModel, rows: TrainingRows) -> NDArray[np.int64]:
    """0 or 1 for each row: on which side it pulls the scale of the reference's outputs."""
    import torch

    outputs = torch.from_numpy(reference.forward(rows.x)).unsqueeze(0)
    y = torch.tensor(rows.y, dtype=torch.long if reference.classification else torch.float32).unsqueeze(0)
    slopes = reference.recipe.row_slopes(outputs, y)[0]
    return (slopes > 0).long().numpy()
