"""Rungs: no more steps than a random search has, and the best of each go on."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodbench.study.halving import Rung, best_configurations, plan_rungs


@given(st.integers(1, 500), st.integers(16, 5000), st.integers(1, 3000) | st.just(math.inf), st.booleans())
def test_rungs_take_no_more_steps_than_a_random_search(trials: int, steps: int, most: float, pauses: bool) -> None:
    rungs = plan_rungs(trials, steps, most, pauses)
    spent = before = 0
    for rung in rungs:
        spent += rung.trials * (rung.steps - before * pauses)
        before = rung.steps
    assert spent <= trials * steps
    assert rungs[-1].steps == steps
    assert rungs[-1].trials >= 1
    assert rungs[0].trials <= min(4 * trials, most)
    assert [rung.trials for rung in rungs] == sorted((rung.trials for rung in rungs), reverse=True)
    assert rungs[0].trials >= min(trials, most)


@pytest.mark.parametrize(
    ("trials", "most", "pauses", "expected"),
    [
        (20, math.inf, True, [(125, 80), (500, 20), (2000, 15)]),
        (20, math.inf, False, [(125, 80), (500, 20), (2000, 10)]),  # it is trained anew at each rung
        (20, 30, True, [(125, 30), (500, 20), (2000, 19)]),
        (20, 12, True, [(2000, 12)]),  # the whole space is no more than the budget
        (1, math.inf, True, [(2000, 1)]),
        (2, math.inf, True, [(125, 8), (500, 2), (2000, 1)]),
    ],
)
def test_planned(trials: int, most: float, pauses: bool, expected: list[tuple[int, int]]) -> None:
    assert plan_rungs(trials, 2000, most, pauses) == tuple(Rung(*rung) for rung in expected)


def test_the_best_that_were_trained_on_every_seed_go_on() -> None:
    errors = {0: [0.3, 0.3], 1: [0.1], 2: [0.2, 0.4], 3: [0.5, 0.5], 4: [0.1, math.nan], 5: [0.1, 0.2]}
    rows = [
        {"configuration": number, "seed": seed, "environment": "a", "error": error}
        for number, own in errors.items()
        for seed, error in enumerate(own)
    ]
    assert best_configurations(rows, "mean", 2, 2) == (0, 5)  # of equal ones, the first
    assert best_configurations(rows, "mean", 2, 9) == (0, 2, 3, 5)
    assert best_configurations([], "mean", 2, 2) == ()
