"""A training gives the same bits alone, in any pack, and with any seeds beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from oodbench import Linear, LossMethod, Mlp, Predictor, Recipe, Setup, Trainer, TrainingRows, Trial
from oodbench.engine.models import Model
from oodbench.plugin.registry import find

# of each kind of product: by seed, by trial, of a lone output, of gates, of second derivatives, of a method's network
METHODS = ("erm", "srm", "irm", "coral", "hrm", "iga", "dann", "rdm", "anchor", "fishr")
MODELS = {"linear": Linear(), "mlp": Mlp(width=(20, 10)), "wide": Mlp(width=(32,))}
SEEDS = (0, 1, 2)
Task = Literal["regression", "classification"]


def rows_of(task: Task, seed: int, rows: int = 120, features: int = 10) -> TrainingRows:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, features))
    signal = x @ rng.normal(size=features) + rng.normal(size=rows)
    y = signal if task == "regression" else (signal > 0).astype(np.int64)
    return TrainingRows(x, y, task, 2, np.arange(rows) % 3)


def bits(predictor: Predictor) -> bytes:
    parameters = predictor.parameters  # type: ignore[attr-defined]
    return bytes(np.ascontiguousarray(parameters).tobytes())


class Division:
    """All trainings, and how they are divided into packs."""

    def __init__(self, method: str, task: Task, model: Model, batch: int) -> None:
        self.method = find("method", method)()
        assert isinstance(self.method, LossMethod)
        self.train = {seed: rows_of(task, seed) for seed in SEEDS}
        self.setup = Setup(model, Recipe(steps=5, batch=batch))
        defaults = {name: dimension.default for name, dimension in self.method.search_space().items()}
        self.trials = [
            Trial(place, defaults | {"learning_rate": 0.001 * (place + 1)}, seed, 100 * seed + place)
            for seed in SEEDS
            for place in range(3)
        ]

    def train_together(self, places: Sequence[int]) -> dict[int, bytes]:
        trials = [self.trials[place] for place in sorted(places)]
        fitted = self.method.fit_pack(
            {trial.seed: self.train[trial.seed] for trial in trials}, trials, Trainer(self.setup)
        )
        return dict(zip(sorted(places), map(bits, fitted), strict=True))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=3, deadline=None, phases=[Phase.generate])
@given(labels=st.lists(st.integers(0, 3), min_size=9, max_size=9), data=st.data())
def test_bits_do_not_depend_on_the_pack(method: str, model: str, labels: list[int], data: st.DataObject) -> None:
    task = data.draw(st.sampled_from(sorted(find("method", method).tasks)))
    division = Division(method, task, MODELS[model], data.draw(st.sampled_from([0, 50])))
    together: dict[int, bytes] = {}
    for label in set(labels):
        together |= division.train_together([place for place, other in enumerate(labels) if other == label])
    alone = data.draw(st.sampled_from(range(len(labels))))
    assert together[alone] == division.train_together([alone])[alone]
    assert together == division.train_together(range(len(labels)))
