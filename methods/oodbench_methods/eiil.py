"""Environment inference for invariant learning: split the rows where a reference model is least invariant, then IRM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oodbench import Predictor, TrainingRows
from oodbench.engine.trial import Trial, training_entropy
from oodbench_methods.erm import ERM
from oodbench_methods.irm import IRM

if TYPE_CHECKING:
    from oodbench.engine.fitted import FittedModel
    from oodbench.engine.trainer import Trainer


class EIIL(IRM):
    """Environment inference for invariant learning (Creager et al. 2021), with IRM on what it infers.

    The split that maximizes IRM's penalty of the reference, summed over rows as in the authors' code, is the sign
    of each row's slope; it is taken in closed form rather than by 10,000 gradient steps.
    """

    needs = frozenset()

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        references = fit_references(train, sorted({trial.seed for trial in trials}), trainer)
        split = {
            seed: replace(train[seed], environment=infer_environments(references[seed], train[seed]))
            for seed in references
        }
        return super().fit_pack(split, trials, trainer)


def fit_references(train: Mapping[int, TrainingRows], seeds: Sequence[int], trainer: Trainer) -> dict[int, FittedModel]:
    """An ERM model per seed, with ERM's defaults."""
    hparams = {name: dimension.default for name, dimension in ERM().search_space().items()}
    trials = [Trial(0, hparams, seed, training_entropy("reference", 0, seed)) for seed in seeds]
    return dict(zip(seeds, trainer.fit(ERM(), train, trials), strict=True))


def infer_environments(reference: FittedModel, rows: TrainingRows) -> NDArray[np.int64]:
    """0 or 1 for each row: on which side it pulls the scale of the reference's outputs."""
    import torch

    outputs = torch.from_numpy(reference.forward(rows.x)).unsqueeze(0)
    y = torch.tensor(rows.y, dtype=torch.long if reference.classification else torch.float32).unsqueeze(0)
    slopes = reference.recipe.row_slopes(outputs, y)[0]
    return (slopes > 0).long().numpy()
