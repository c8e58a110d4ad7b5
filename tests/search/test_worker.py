"""What a worker does with a pack that cannot be trained as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from concluding import planned
from oodbench import Predictor, Trainer, TrainingRows, Trial
from oodbench.search.worker import run_pack
from oodbench_methods.erm import ERM


class Narrow(ERM):
    """ERM on a device that holds so many trainings at once, and with a configuration that cannot be trained."""

    def __init__(self, room: int, broken: int | None = None) -> None:
        self.room, self.broken, self.sizes = room, broken, list[int]()

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        self.sizes.append(len(trials))
        if len(trials) > self.room:
            raise MemoryError("out of memory")
        if any(trial.configuration == self.broken for trial in trials):
            raise ValueError("it has no minimum")
        return super().fit_pack(train, trials, trainer)


@pytest.mark.parametrize(
    ("room", "broken", "sizes"),
    [(8, None, [8]), (3, None, [8, 4, 2, 2, 4, 2, 2]), (8, 3, [8, 4, 2, 2, 1, 1, 4, 2, 2, 1, 1])],
    ids=["fits", "memory", "broken"],
)
def test_halves_are_tried_of_a_pack_that_raises(room: int, broken: int | None, sizes: list[int]) -> None:
    options: dict[str, Any] = {
        "settings": {"majority": 60, "minority": 20, "test_rows": 20},
        "recipe": {"steps": 20},
        "trials": 4,
        "seeds": 2,
    }
    study = planned(ERM, "selection_bias", **options)
    (pack,) = study.packs
    data = {seed: study.search_data(seed) for seed in study.seeds}
    narrow = Narrow(room, broken)
    result, whole = run_pack(narrow, pack, data, study.setup), run_pack(ERM(), pack, data, study.setup)
    assert narrow.sizes == sizes
    lost = {place for place, trial in enumerate(pack.trials) if trial.configuration == broken}
    assert result.failures == dict.fromkeys(lost, "ValueError: it has no minimum")
    for place, (predictor, usual) in enumerate(zip(result.predictors, whole.predictors, strict=True)):
        assert place in lost or predictor.parameters.tobytes() == usual.parameters.tobytes()
