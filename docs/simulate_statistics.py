"""What the statistics of a leaderboard do where the truth is known; writes the tables of statistics.md.

python docs/simulate_statistics.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oodbench.board.statistics import (
    crossed_interval,
    may_be_best,
    mean_interval,
    sides_of,
    worse_pairs,
)

PAGE = Path(__file__).with_name("statistics.md")
METHODS = (7, 20, 40)
FAILS, FAR_OFF = 0.2, 20.0  # how often a failing method fails, and by how many standard deviations of luck
BATCH = 50  # repetitions at once, which bounds the memory
Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class World:
    """Where errors come from, as standard deviations: what all methods share, what is a method's own, and noise."""

    name: str
    seed: float = 0.0
    environment: float = 0.0
    own_seed: float = 0.0  # a method's luck with a training draw
    own_environment: float = 0.0  # a method's strength in an environment
    heavy: bool = False  # t with 3 degrees of freedom instead of normal
    uneven: float = 0.0  # how unequal the methods' own deviations are: std of their logarithms
    noisy: float = 1.0  # times as large in the first method
    skewed: bool = False  # luck is log-normal: a draw is rarely bad, and then very bad
    failing: float = 0.0  # this share of the methods is far off on one seed in five, and makes up for it on the others

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, int, int, int], fixed: str, shifts: Numbers | None = None
    ) -> Numbers:
        """Errors of methods that are equally good but for the shifts.  # [repetition, method, seed, environment]

        What is `fixed` is not drawn anew in thought, so that its own effects cancel over it: that is the null. Shifts
        are in standard deviations of a method's values over seeds.
        """
        repetitions, methods, seeds, environments = shape

        def normal(*size: int) -> Numbers:
            return rng.standard_t(3, size) if self.heavy else rng.normal(size=size)

        def luck(*size: int) -> Numbers:
            return rng.lognormal(size=size) - np.exp(0.5) if self.skewed else normal(*size)

        scale = np.exp(self.uneven * rng.normal(size=(repetitions, methods, 1, 1)))
        scale[:, 0] *= self.noisy
        own_seed = self.own_seed * luck(repetitions, methods, seeds, 1)
        failing = math.ceil(self.failing * methods)
        own_seed[:, :failing] += FAR_OFF * ((rng.random(size=(repetitions, failing, seeds, 1)) < FAILS) - FAILS)
        own_environment = self.own_environment * normal(repetitions, methods, 1, environments)
        if fixed == "environments":
            own_environment -= own_environment.mean(-1, keepdims=True)
        if fixed == "seeds":
            own_seed -= own_seed.mean(-2, keepdims=True)
        shared = self.seed * normal(repetitions, 1, seeds, 1) + self.environment * normal(
            repetitions, 1, 1, environments
        )
        errors = shared + scale * (own_seed + own_environment + normal(*shape))
        if shifts is not None:
            variance = (3 if self.heavy else 1) * (self.own_seed**2 + 1 / environments)
            errors = errors + scale * np.sqrt(variance) * shifts[:, None, None]
        return errors


ALL = {"seed": 2.0, "environment": 2.0, "own_seed": 1.0, "own_environment": 1.0}
SYMMETRIC = (
    World("noise alone"),
    World("shared effects of seed and environment", seed=2, environment=2),
    World("a method's luck with a training draw", own_seed=1),
    World("a method's strength in an environment", own_environment=1),
    World("all of them", **ALL),
    World("all of them, heavy tails", heavy=True, **ALL),
    World("all of them, unequal variances", uneven=0.5, **ALL),
    World("all of them, heavy tails, unequal variances", heavy=True, uneven=0.5, **ALL),
    World("all of them, one method twice as noisy", noisy=2, **ALL),
    World("all of them, one method three times as noisy", noisy=3, **ALL),
)
SKEWED = (
    World("skewed luck of equal size", skewed=True, **ALL),
    World("skewed luck of unequal size", skewed=True, uneven=1, **ALL),
    World("skewed luck, three times as large in one method", skewed=True, noisy=3, **ALL),
    World("one method fails on one seed in five", failing=0.01, **ALL),
    World("a third of the methods fail on one seed in five", failing=0.33, **ALL),
)


# Claims ------------------------------------------------------------------------------------------------------------


def any_pair(values: Numbers) -> Flags:
    """Whether any method is said to be worse than another.  # [repetition, method, unit] -> [repetition]"""
    return np.asarray(worse_pairs(values).any((-1, -2)))


def draws(world: World, repetitions: int, methods: int, seeds: int, fixed: str) -> Iterator[Numbers]:
    """Tables with 12 environments, always the same ones.  # [repetition, method, seed, environment]"""
    rng = np.random.default_rng([2024, methods, seeds])
    for start in range(0, repetitions, BATCH):
        yield world.draw(rng, (min(BATCH, repetitions - start), methods, seeds, 12), fixed)


def errors_of(world: World, repetitions: int, methods: int) -> dict[str, float]:
    """How often there is a claim though all methods are equally good, with 10 seeds."""
    names = ("all pairs", "all pairs over environments", "against the first", "the first not among the best")
    found: dict[str, list[Flags]] = {name: [] for name in names}
    for table in draws(world, repetitions, methods, 10, "environments"):
        values = table.mean(-1)
        found["all pairs"].append(any_pair(values))
        found["against the first"].append((sides_of(values, 0) != 0).any(-1))
        found["the first not among the best"].append(~may_be_best(values)[:, 0])
    for table in draws(world, repetitions, methods, 10, "seeds"):
        found["all pairs over environments"].append(any_pair(table.mean(-2)))
    return {name: float(np.concatenate(claims).mean()) for name, claims in found.items()}


def error_of_pairs(world: World, repetitions: int, methods: int, seeds: int) -> float:
    tables = draws(world, repetitions, methods, seeds, "environments")
    return float(np.concatenate([any_pair(table.mean(-1)) for table in tables]).mean())


def error_of_cells(world: World, repetitions: int, methods: int) -> float:
    """As over 10 seeds, but every seed and environment is taken as a unit."""
    tables = draws(world, repetitions, methods, 10, "environments")
    return float(np.concatenate([any_pair(table.reshape(*table.shape[:2], -1)) for table in tables]).mean())


def powers_of(world: World, repetitions: int, methods: int, seeds: int, effect: float) -> dict[str, float]:
    """The share found of what the first method is better by: `effect` standard deviations of the paired difference.

    Those of two methods that are equally noisy are sqrt(2) times as large as those of one.
    """
    found: dict[str, list[float]] = {"all pairs": [], "against the first": [], "not among the best": []}
    rng = np.random.default_rng([2025, methods, seeds])
    shifts = np.full(methods, effect * np.sqrt(2))
    shifts[0] = 0
    for start in range(0, repetitions, BATCH):
        shape = (min(BATCH, repetitions - start), methods, seeds, 12)
        values = world.draw(rng, shape, "environments", shifts).mean(-1)
        found["all pairs"] += worse_pairs(values)[:, 1:, 0].mean(-1).tolist()
        found["against the first"] += (sides_of(values, 0)[:, 1:] > 0).mean(-1).tolist()
        found["not among the best"] += (~may_be_best(values)[:, 1:]).mean(-1).tolist()
    return {family: float(np.mean(shares)) for family, shares in found.items()}


def coverage(rng: np.random.Generator, repetitions: int, units: int, skewed: bool) -> float:
    """How often the interval over units holds the true mean."""
    values = rng.lognormal(size=(repetitions, units)) if skewed else rng.normal(size=(repetitions, units))
    truth = np.exp(0.5) if skewed else 0.0
    return float(np.mean([_holds(mean_interval(row), truth) for row in values]))


def crossed_coverage(rng: np.random.Generator, repetitions: int, seeds: int, environments: int) -> float:
    world = World("", own_seed=1, own_environment=1)
    tables = world.draw(rng, (repetitions, 1, seeds, environments), fixed="neither")[:, 0]
    return float(np.mean([_holds(crossed_interval(table), 0.0) for table in tables]))


def _holds(interval: tuple[float, float] | None, truth: float) -> bool:
    return interval is not None and interval[0] <= truth <= interval[1]


# Tables ------------------------------------------------------------------------------------------------------------

Rows = list[list[str]]


def tables(repetitions: int) -> dict[str, Rows]:
    return {
        "errors": _errors(SYMMETRIC, repetitions),
        "skewed": _errors(SKEWED, repetitions),
        "cells": _cells(repetitions // 4),
        "few": _few(repetitions),
        "power": _power(repetitions // 4),
        "families": _families(repetitions // 4),
        **_coverages(repetitions // 4),  # each is 9,999 resamples
    }


def _errors(worlds: tuple[World, ...], repetitions: int) -> Rows:
    rows: Rows = []
    for methods in METHODS:
        for world in worlds:
            found = errors_of(world, repetitions, methods)
            rows = rows or [["world", "methods", *found]]
            rows.append([world.name, str(methods), *(f"{value:.3f}" for value in found.values())])
    return rows


def _cells(repetitions: int) -> Rows:
    rows = [["world", *(f"{methods} methods" for methods in METHODS)]]
    for world in SYMMETRIC[:5]:
        found = (error_of_cells(world, repetitions, methods) for methods in METHODS)
        rows.append([world.name, *(f"{value:.3f}" for value in found)])
    return rows


def _few(repetitions: int) -> Rows:
    """All pairs with 5 seeds."""
    rows = [["world", *(f"{methods} methods" for methods in METHODS)]]
    for world in SYMMETRIC[4:]:
        found = (error_of_pairs(world, repetitions, methods, 5) for methods in METHODS)
        rows.append([world.name, *(f"{value:.3f}" for value in found)])
    return rows


def _power(repetitions: int) -> Rows:
    effects = (0.5, 1.0, 1.5, 2.0)
    rows = [["methods", "seeds", *(f"{effect:g} std" for effect in effects)]]
    for methods in (2, 4, *METHODS):
        for seeds in (5, 10, 20):
            found = (powers_of(SYMMETRIC[4], repetitions, methods, seeds, effect)["all pairs"] for effect in effects)
            rows.append([str(methods), str(seeds), *(f"{value:.2f}" for value in found)])
    return rows


def _families(repetitions: int) -> Rows:
    rows: Rows = []
    for methods in METHODS:
        for world in SYMMETRIC[4:7]:
            found = powers_of(world, repetitions, methods, 10, 1.0)
            rows = rows or [["world", "methods", *found]]
            rows.append([world.name, str(methods), *(f"{value:.2f}" for value in found.values())])
    return rows


def _coverages(repetitions: int) -> dict[str, Rows]:
    rng = np.random.default_rng(2024)
    held = [["units", "normal", "log-normal"]]
    for units in (5, 10, 20, 50):
        cells = (f"{coverage(rng, repetitions, units, skewed):.3f}" for skewed in (False, True))
        held.append([str(units), *cells])
    both = [["seeds × environments", "seeds and environments drawn anew"]]
    for seeds, environments in ((5, 6), (10, 12), (10, 49)):
        both.append([f"{seeds} × {environments}", f"{crossed_coverage(rng, repetitions, seeds, environments):.3f}"])
    return {"coverage": held, "crossed": both}


def write_into(page: str, made: dict[str, Rows]) -> str:
    """The page with each table between its two marks."""
    for name, rows in made.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, after = page.split(begin)[0], page.split(end)[1]
        lines = [rows[0], ["---"] + ["---:"] * (len(rows[0]) - 1), *rows[1:]]
        page = before + begin + "".join(f"| {' | '.join(line)} |\n" for line in lines) + end + after
    return page


if __name__ == "__main__":
    PAGE.write_text(write_into(PAGE.read_text(encoding="utf-8"), tables(repetitions=2000)), encoding="utf-8")
