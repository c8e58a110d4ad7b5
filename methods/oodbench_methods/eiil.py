"""Environment inference for invariant learning: split the rows where a reference model is least invariant, then IRM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oodbench import Option, Predictor, Trainer, TrainingRows, Trial, Value
from oodbench.kit import fit_references, infer_environments
from oodbench_methods.erm import ERM
from oodbench_methods.irm import IRM


class EIIL(IRM):
    """Environment inference for invariant learning (Creager et al. 2021), with IRM on what it infers.

    The split maximizes IRM's penalty of the reference, summed over rows as in the authors' code: for classes by a
    single factor of the outputs, where it is the sign of each row's slope, and in regression by a factor of each input
    of the last layer; `factors=single` has one in regression too, which is what reproduces the figures that Liu et al.
    (2024) publish for it. Differs from the authors' code: the split is found by alternation rather than by 10,000
    gradient steps, and the IRM that follows has a single factor, and `anneal`, in regression too.
    """

    needs = frozenset()
    takes_weights = True
    shares_rows = True
    space = {**IRM.space, "factors": Option("inputs", "single")}

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        """It infers its environments."""

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        references = fit_references(ERM(), train, trials, trainer)
        single = trials[0].hparams["factors"] == "single"
        split = {
            seed: replace(train[seed], environment=infer_environments(reference, train[seed], single))
            for seed, reference in references.items()
        }
        return super().fit_pack(split, trials, trainer)
