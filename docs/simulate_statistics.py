"""What the statistics of a leaderboard do where the truth is known; writes the tables of statistics.md.

python docs/simulate_statistics.py
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oodbench.board.statistics import (
    LEVEL,
    crossed_interval,
    differences,
    fewest_units,
    holm,
    mean_interval,
    signed_rank,
)

PAGE = Path(__file__).with_name("statistics.md")
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """Where errors come from, as standard deviations: what all methods share, what is a method's own, and noise."""

    name: str
    seed: float = 0.0
    environment: float = 0.0
    own_seed: float = 0.0  # a method's luck with a training draw
    own_environment: float = 0.0  # a method's strength in an environment
    heavy: bool = False  # t with 3 degrees of freedom instead of normal

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, int, int, int], fixed: str, shifts: Numbers | None = None
    ) -> Numbers:
        """Errors of methods that are equally good but for the shifts.  # [repetition, method, seed, environment]

        What is `fixed` is not drawn anew in thought, so that its own effects cancel over it: that is the null.
        """
        repetitions, methods, seeds, environments = shape

        def normal(*size: int) -> Numbers:
            return rng.standard_t(3, size) if self.heavy else rng.normal(size=size)

        own_seed = self.own_seed * normal(repetitions, methods, seeds, 1)
        own_environment = self.own_environment * normal(repetitions, methods, 1, environments)
        if fixed == "environments":
            own_environment -= own_environment.mean(-1, keepdims=True)
        if fixed == "seeds":
            own_seed -= own_seed.mean(-2, keepdims=True)
        shared = self.seed * normal(repetitions, 1, seeds, 1) + self.environment * normal(
            repetitions, 1, 1, environments
        )
        errors = shared + own_seed + own_environment + normal(*shape)
        return errors if shifts is None else errors + shifts[:, None, None]


WORLDS = (
    World("noise alone"),
    World("shared effects of seed and environment", seed=2, environment=2),
    World("a method's luck with a training draw", own_seed=1),
    World("a method's strength in an environment", own_environment=1),
    World("all of them", seed=2, environment=2, own_seed=1, own_environment=1),
    World("all of them, heavy tails", seed=2, environment=2, own_seed=1, own_environment=1, heavy=True),
)


def claims(values: Numbers) -> Numbers:
    """Adjusted p-values of all pairs.  # [repetition, method, unit] -> [repetition, pair]"""
    first, second = zip(*combinations(range(values.shape[1]), 2), strict=True)
    return holm(signed_rank(differences(values[:, list(first)], values[:, list(second)])))


def family_wise_error(values: Numbers) -> float:
    return float((claims(values) <= LEVEL).any(-1).mean())


def errors_of(world: World, rng: np.random.Generator, repetitions: int, methods: int) -> dict[str, float]:
    """How often anything is claimed though there is nothing, with 10 seeds and 12 environments."""
    shape = (repetitions, methods, 10, 12)
    over_seeds, over_environments = (world.draw(rng, shape, fixed) for fixed in ("environments", "seeds"))
    return {
        "over seeds": family_wise_error(over_seeds.mean(-1)),
        "over environments": family_wise_error(over_environments.mean(-2)),
        "cells as pairs": family_wise_error(over_seeds.reshape(*shape[:2], -1)),
    }


def power(rng: np.random.Generator, repetitions: int, methods: int, seeds: int, effect: float) -> float:
    """The share found of what one better method is ahead by: `effect` standard deviations of the paired difference."""
    values = rng.normal(size=(repetitions, methods, seeds)) / np.sqrt(2)
    values[:, 0] -= effect
    with_first = [index for index, pair in enumerate(combinations(range(methods), 2)) if 0 in pair]
    return float((claims(values) <= LEVEL)[:, with_first].mean())


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


def tables(repetitions: int) -> dict[str, list[list[str]]]:
    rng = np.random.default_rng(2024)
    intervals = repetitions // 4  # each is 9,999 resamples
    errors = [["world", "methods", "over seeds", "over environments", "cells as pairs"]]
    for methods in (2, 4):
        for world in WORLDS:
            found = errors_of(world, rng, repetitions, methods)
            errors.append([world.name, str(methods), *(f"{value:.3f}" for value in found.values())])
    effects = (0.5, 1.0, 1.5, 2.0)
    found_share = [["methods", "seeds", *(f"{effect:g} std" for effect in effects)]]
    for methods in (2, 4, 7):
        for seeds in (6, 10, 20):
            enough = seeds >= fewest_units(methods * (methods - 1) // 2)
            shares = [f"{power(rng, repetitions, methods, seeds, one):.2f}" if enough else "too few" for one in effects]
            found_share.append([str(methods), str(seeds), *shares])
    held = [["units", "normal", "log-normal"]]
    for units in (5, 10, 20, 50):
        cells = (f"{coverage(rng, intervals, units, skewed):.3f}" for skewed in (False, True))
        held.append([str(units), *cells])
    both = [["seeds × environments", "seeds and environments drawn anew"]]
    for seeds, environments in ((5, 6), (10, 12), (10, 49)):
        both.append([f"{seeds} × {environments}", f"{crossed_coverage(rng, intervals, seeds, environments):.3f}"])
    needed = [["methods", "pairs", "fewest units"]]
    for methods in (2, 3, 4, 5, 7, 8, 10):
        pairs = methods * (methods - 1) // 2
        needed.append([str(methods), str(pairs), str(fewest_units(pairs))])
    return {"errors": errors, "power": found_share, "coverage": held, "crossed": both, "needed": needed}


def write_into(page: str, made: dict[str, list[list[str]]]) -> str:
    """The page with each table between its two marks."""
    for name, rows in made.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, after = page.split(begin)[0], page.split(end)[1]
        lines = [rows[0], ["---"] + ["---:"] * (len(rows[0]) - 1), *rows[1:]]
        page = before + begin + "".join(f"| {' | '.join(line)} |\n" for line in lines) + end + after
    return page


if __name__ == "__main__":
    PAGE.write_text(write_into(PAGE.read_text(encoding="utf-8"), tables(repetitions=4000)), encoding="utf-8")
