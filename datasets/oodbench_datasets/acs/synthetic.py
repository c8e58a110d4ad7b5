"""A synthetic census sample: rows drawn from a model of the US Census Bureau's 2024 ACS persons.

It stands in for the real rows of folktables' ACSTravelTime (Ding et al. 2021) where there is no network. The
parameters beside this file were fitted by `datasets/fit_acs_synthetic.py`; no census row is part of them. Each state is
a mixture of latent classes, fitted apart for people who work from home, commute up to 20 minutes, and longer (latent
class analysis as a synthesizer of survey data: Dunson and Xing 2009). Within a class the columns are independent: a
state keeps each column's distribution given the label closely, and what columns say about each other as far as the
classes show it. States differ in both P(X) and P(Y|X).

What is not real:

- California and Texas are not in the fitted data. Each is its neighbours put together (`POOLED`), with the neighbours'
  PUMA codes, and says nothing about the state itself.
- ESP and POWPUMA are missing in all rows: the source does not have them.
- RELP knows three kinds: 0 a householder, 1 (husband or wife) for any other member of a household, 17 (not
  institutional) for group quarters.
- Every weight PWGTP is 1, and every person is at work (ESR 1), as folktables' filter wants it.

Codes are those of the 2018 dictionary: JWTR, not JWTRNS. PUMA codes are those drawn after the 2020 census.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import UnknownName
from oodbench_datasets.acs.states import FIPS, FITTED, POOLED, STATES

__all__ = ["POOLED", "ROWS", "STATES", "draw_state"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

PARAMETERS = Path(__file__).with_name("synthetic.npz")

CONSTANT = {"ESP": np.nan, "POWPUMA": np.nan, "PWGTP": 1.0, "ESR": 1.0}


def _count_rows() -> dict[str, int]:
    with np.load(PARAMETERS, allow_pickle=False) as parameters:
        fitted = dict(zip(FITTED, parameters["rows"].tolist(), strict=True))
    return fitted | {state: sum(fitted[donor] for donor in donors) for state, donors in POOLED.items()}


CENSUS_ROWS: Mapping[str, int] = MappingProxyType(_count_rows())
"""The rows each state was fitted to, its neighbours' if it is pooled."""

ROWS: Mapping[str, int] = MappingProxyType(
    # A quarter of the census, within bounds; Massachusetts, where models are trained, gets what the largest get.
    {state: min(max(CENSUS_ROWS[state] // 4, 2_000), 20_000) for state in STATES} | {"MA": 20_000}
)
"""Rows of a state in a sample of ordinary size."""


def draw_state(state: str, rows: int, rng: np.random.Generator) -> dict[str, Array]:
    """Rows of one state, a column each, coded as in the census files; NaN is missing.

    JWMNP, the minutes to work, is NaN for people who work from home.
    """
    if state not in FIPS:
        raise UnknownName("state", state, STATES)
    columns = _draw_pooled(POOLED[state], rows, rng) if state in POOLED else _models()[state].draw(rows, rng)
    for name, value in {**CONSTANT, "ST": float(FIPS[state])}.items():
        columns[name] = np.full(rows, value)
    return columns


def _draw_pooled(donors: tuple[str, ...], rows: int, rng: np.random.Generator) -> dict[str, Array]:
    census = np.array([CENSUS_ROWS[donor] for donor in donors])
    ends = np.cumsum(census)
    chosen = np.searchsorted(ends, rng.integers(0, ends[-1], rows), side="right")
    parts = [_models()[donor].draw(int((chosen == i).sum()), rng) for i, donor in enumerate(donors)]
    place = np.argsort(np.argsort(chosen, kind="stable"), kind="stable")  # so that the donors' rows are mixed
    return {name: np.concatenate([part[name] for part in parts])[place] for name in parts[0]}


@dataclass(frozen=True, eq=False)
class Choice:
    """Several distributions over entries, as integer weights whose sum is the same for each.

    The weights of all distributions stand in one line, so one search in their cumulative sum draws from any of them;
    integers make it the same on any machine.
    """

    cumulative: Integers  # [entry]
    total: int

    @classmethod
    def of(cls, weights: NDArray[np.unsignedinteger], distributions: int) -> Choice:
        cumulative = np.cumsum(weights.ravel(), dtype=np.int64)
        return cls(cumulative, int(cumulative[-1]) // distributions)

    def draw(self, distribution: Integers, rng: np.random.Generator) -> Integers:
        """An entry for each row, from the distribution named for it."""
        return self.find(distribution * self.total + rng.integers(0, self.total, len(distribution)))

    def find(self, points: Integers) -> Integers:
        """The entries in whose weight these points of the line lie."""
        return np.searchsorted(self.cumulative, points, side="right")


@dataclass(frozen=True, eq=False)
class Column:
    """Latent class to bin, and bin to code."""

    bins: Choice  # a distribution over bins for each class
    bins_per_class: int
    within: Choice  # a distribution over codes for each bin
    codes: Array  # [code]

    def draw(self, latent: Integers, rng: np.random.Generator) -> Array:
        chosen = self.bins.draw(latent, rng) % self.bins_per_class
        return self.codes[self.within.draw(chosen, rng)]


@dataclass(frozen=True, eq=False)
class StateModel:
    classes: Choice
    columns: Mapping[str, Column]

    def draw(self, rows: int, rng: np.random.Generator) -> dict[str, Array]:
        # One row from each of `rows` equal parts of the classes, as in a stratified survey: the share of long commutes
        # is the state's own in small samples too.
        points = (rng.permutation(rows) * self.classes.total + rng.integers(0, self.classes.total)) // rows
        latent = self.classes.find(points)
        return {name: column.draw(latent, rng) for name, column in self.columns.items()}


@functools.cache
def _models() -> dict[str, StateModel]:
    """The parameter file, a model for each state that has one.

    `NAME_bins` [class, bin] holds the classes of all states, one state after the other; those of PUMA, which has codes
    of its own in each state, stand in one line.
    """
    with np.load(PARAMETERS, allow_pickle=False) as file:
        parameters = dict(file)
    shared = {}
    for name in (key.removesuffix("_within") for key in parameters if key.endswith("_within")):
        codes = parameters[f"{name}_codes"].astype(np.float64)
        codes[codes < 0] = np.nan
        shared[name] = Choice.of(parameters[f"{name}_within"], parameters[f"{name}_bins"].shape[1]), codes
    models = {}
    first = first_puma = first_cell = 0
    for state, classes, pumas in zip(FITTED, parameters["classes"], parameters["pumas"], strict=True):
        own = slice(first, first + int(classes))
        columns = {}
        for name, (within, codes) in shared.items():
            bins = parameters[f"{name}_bins"][own]  # [class, bin]
            columns[name] = Column(Choice.of(bins, len(bins)), bins.shape[1], within, codes)
        cells = parameters["PUMA_bins"][first_cell : first_cell + int(classes) * int(pumas)]
        codes = parameters["PUMA_codes"][first_puma : first_puma + int(pumas)].astype(np.float64)
        one_code_a_bin = Choice.of(np.ones(int(pumas), dtype=np.uint8), int(pumas))
        columns["PUMA"] = Column(Choice.of(cells, int(classes)), int(pumas), one_code_a_bin, codes)
        models[state] = StateModel(Choice.of(parameters["class_weights"][own], 1), columns)
        first, first_puma, first_cell = own.stop, first_puma + int(pumas), first_cell + cells.size
    return models
