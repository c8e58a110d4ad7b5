"""Batches: their rows, what follows the rows into them, and the parts that explorers fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from oodbench import Hparams, Linear, LossMethod, Mlp, Recipe, Rows, Setup, Trainer, TrainingRows, Trial
from oodbench.engine.batches import StackedRows
from oodbench.engine.models import Model
from oodbench.kit import explore_mechanisms


def numbered(rows: int, seed: int) -> TrainingRows:
    """Every value of a row says which row it is, so that one can be held against the other."""
    number = np.arange(rows)
    x = np.column_stack([number, 1000 * seed + number]).astype(float)
    return TrainingRows(x, number.astype(float), "regression", 2, number % 3, weights=(1.0 + number).astype(float))


def trials_of(seeds: Sequence[int], repeat: int = 0) -> list[Trial]:
    return [Trial(place, {}, seed, place, repeat) for place, seed in enumerate(seeds)]


def batches(data: StackedRows, steps: int) -> list[list[list[int]]]:
    """The numbers of the rows [step, trial, row]."""
    return [data.batch(step, None).y.long().tolist() for step in range(steps)]


@given(st.integers(6, 60), st.integers(1, 20), st.sampled_from([[0], [0, 0, 1, 1], [0, 0, 1], [1, 0, 0, 0]]))
@settings(deadline=None, max_examples=15)
def test_rows_come_once_an_epoch_with_what_is_known_of_them(rows: int, size: int, seeds: list[int]) -> None:
    seeds = sorted(seeds)
    data = StackedRows(
        {seed: numbered(rows, seed) for seed in (0, 1)}, trials_of(seeds), Setup(Linear(), Recipe(batch=size))
    )
    explored = torch.arange(1.0, rows + 1).expand(len(seeds), -1)
    steps = rows // min(size, rows)
    visited: list[list[int]] = [[] for _ in seeds]
    for step in range(steps):
        batch = data.batch(step, explored)
        assert batch.weights is not None
        assert batch.environment is not None
        assert batch.environments is not None
        assert batch.explored is not None
        columns = batch.columns.repeat_interleave(len(seeds) // len(batch.columns), 0)
        for trial, seed in enumerate(seeds):
            number = batch.y[trial].long()
            visited[trial] += number.tolist()
            assert torch.equal(columns[trial], torch.stack([number, 1000 * seed + number, number * 0 + 1]).float())
            assert torch.equal(batch.environment[trial], number % 3)
            share = (1.0 + number) / (1.0 + number).sum()
            assert torch.allclose(batch.weights[trial], share)
            if not data.full:
                assert torch.allclose(batch.explored[trial], share)
            for environment, own in enumerate(batch.environments[trial]):
                inside = share * (number % 3 == environment)
                assert torch.allclose(own, inside / inside.sum().clamp(min=1e-12))
    for trial, seed in enumerate(seeds):
        assert len(visited[trial]) == len(set(visited[trial])) == steps * min(size, rows)
        assert visited[trial] == visited[seeds.index(seed)]  # trials of a seed see the same batches


def test_epochs_seeds_and_repeats_have_orders_of_their_own() -> None:
    rows, setup = {seed: numbered(60, seed) for seed in (0, 1)}, Setup(Linear(), Recipe(batch=60 // 2))
    first, second, _, _ = batches(StackedRows(rows, trials_of([0, 1]), setup), 4)
    again = batches(StackedRows(rows, trials_of([1]), setup), 4)
    (repeated, *_) = batches(StackedRows(rows, trials_of([0], repeat=1), setup), 1)
    assert again[0][0] == first[1]  # alone as in company
    assert set(first[0] + second[0]) == set(range(60))
    assert len({tuple(order) for order in (first[0], first[1], again[2][0], repeated[0])}) == 4


def test_trials_may_have_tables_of_their_own() -> None:
    own = [numbered(40, seed) for seed in (0, 1, 2)]
    shared = [own[0], replace(own[0], weights=np.ones(40)), replace(own[0], weights=None)]
    setup = Setup(Linear(intercept=False), Recipe(batch=8))
    apart, together = (StackedRows(rows, trials_of([0, 0, 0]), setup).batch(1, None) for rows in (own, shared))
    assert apart.columns.shape == (3, 2, 8)
    assert together.columns.shape == (1, 2, 8)
    assert torch.equal(apart.columns[0], together.columns[0])
    assert torch.equal(apart.columns[2, 1] - apart.columns[0, 1], torch.full((8,), 2000.0))
    assert together.weights is not None
    assert torch.allclose(together.weights[1:], torch.tensor(1 / 8))


def opposite_rule(rows: int, classes: bool) -> TrainingRows:
    """One row in ten, environment 1, follows the opposite rule."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, 2))
    minority = np.arange(rows) % 10 == 0
    signal = x[:, 0] * np.where(minority, -3, 3)
    y = (signal > 0).astype(np.int64) if classes else signal + 0.1 * rng.normal(size=rows)
    return TrainingRows(x, y, "classification" if classes else "regression", 2, minority.astype(np.int64))


class Explores(LossMethod):
    def __init__(self) -> None:
        self.fitted_rows: list[int] = []
        self.found: list[Tensor] = []
        self.minority: list[Tensor] = []

    def explores_at(self, step: int, hp: Hparams) -> bool:
        return step % 2 == 0

    def explore(self, rows: Rows, hp: Hparams) -> Tensor:
        self.fitted_rows.append(rows.part().y.shape[-1])
        return explore_mechanisms(rows, torch.full((2,), 0.1), passes=3)

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        self.found.append(rows.explored)
        self.minority.append(rows.environment == 1)
        return rows.risk()


@pytest.mark.parametrize("model", [Linear(), Mlp(width=(8,))], ids=["linear", "mlp"])
@pytest.mark.parametrize("classes", [False, True], ids=["regression", "classes"])
def test_what_is_found_in_a_part_of_the_rows_is_found_in_others(model: Model, classes: bool) -> None:
    exact, part = Explores(), Explores()
    trials = [Trial(place, {"learning_rate": 1e-4, "weight_decay": 0.0}, 0, entropy=place) for place in (1, 2)]
    for method, rows in ((exact, 4000), (part, 900)):
        setup = Setup(model, Recipe(steps=4, batch=500, explore=rows))
        Trainer(setup).fit(method, {0: opposite_rule(4000, classes)}, trials)
        assert method.fitted_rows == [rows, rows]
    theirs, ours = torch.stack(exact.found), torch.stack(part.found)  # [step, trial, row]
    assert torch.allclose(ours.sum(-1), torch.ones(4, 2))
    assert torch.minimum(theirs, ours).sum(-1).mean() > 0.8  # what the two have in common
    assert (ours * torch.stack(part.minority)).sum(-1).mean() > 0.6  # a tenth of the rows


def test_how_many_rows_explorers_fit() -> None:
    kinds = [(True, True), (True, False), (False, True)]  # classes, fitted repeatedly
    assert [Recipe().explored_rows(16_384, *kind) for kind in kinds] == [16_384] * 3
    assert [Recipe().explored_rows(20_000, *kind) for kind in kinds] == [3_072, 16_384, 16_384]
    assert Recipe(loss="squared").explored_rows(20_000, True, True) == 16_384
    assert [Recipe(explore=500).explored_rows(rows, True, True) for rows in (300, 20_000)] == [300, 500]
