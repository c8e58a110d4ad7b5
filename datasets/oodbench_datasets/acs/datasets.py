"""Predictions about persons in US states, from the Census Bureau's PUMS files (Ding et al. 2021, folktables).

`acs_travel` is the experiment of Liu et al. (2024): 2000 training rows from MA, validation on the rest of MA, test on
the other states, each an environment.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from oodbench import Dataset, Environment, Mlp, Recipe, setting
from oodbench.encoder import Encoder, RawColumn
from oodbench.errors import UnknownName, UnusableData
from oodbench_datasets.acs.census import CENSUS, CODES, STATES, PersonFile, remedy_for
from oodbench_datasets.acs.encoding import Categories, Codes
from oodbench_datasets.acs.files import CensusFiles
from oodbench_datasets.acs.pums import Persons, Problem, load_states, persons, select

OTHERS = "others"
ANSWERS = ("no", "yes")


@dataclass(frozen=True)
class Acs(Dataset):
    """What the census datasets share: states, sampling, missing values and encoding."""

    task = "classification"
    model = Mlp(width=(20, 10))
    recipe = Recipe(steps=500)
    files = CensusFiles()
    problem: ClassVar[Problem]

    source: tuple[str, ...] = setting(("MA",), "states to train and validate on; several are the known groups")
    target: tuple[str, ...] = setting((OTHERS,), "states to test on; others: every other one of the 50 states")
    leave_out: tuple[str, ...] = setting((), "states not to test on, for example those without files")
    train_rows: int = setting(2000, "training rows from each source state, drawn anew for every seed")
    validation_rows: int | None = setting(None, "validation rows from each source state; none: all that are left")
    year: int = setting(2018, "year of the census files, 2014 to 2024")
    horizon: Literal["1-Year", "5-Year"] = setting("1-Year", "how many years the files cover")
    missing: Literal["indicator", "folktables"] = setting(
        "indicator", "indicator: the training median and a column that marks it; folktables: missing is 0"
    )
    encoding: Literal["codes", "categories"] = setting(
        "codes", "codes: census codes as numbers, standardised, as in the paper; categories: one column per level"
    )
    drop: tuple[str, ...] = setting((), "features to drop, for example PUMA,POWPUMA")

    def __post_init__(self) -> None:
        for name in ("source", "target", "leave_out", "drop"):
            values = tuple(value if value == OTHERS else value.upper() for value in getattr(self, name) if value)
            object.__setattr__(self, name, tuple(dict.fromkeys(values)))
        for state in (*self.source, *(state for state in self.target if state != OTHERS), *self.leave_out):
            if state not in CODES:
                raise UnknownName("state", state, CODES)
        if not self.source or not self.target:
            raise ValueError("source and target need at least one state each.")
        common = set(self.source) & set(self.target)
        if common:
            raise ValueError(f"{', '.join(sorted(common))} cannot be both source and target.")
        if not self._targets:
            raise ValueError("leave_out leaves no state to test on.")
        if self.train_rows < 2 or (self.validation_rows is not None and self.validation_rows < 1):
            raise ValueError("train_rows must be at least 2, validation_rows at least 1 or none.")
        PersonFile(self.year, self.horizon, self.source[0])
        if self.drop:
            self._check_drop()

    def _check_drop(self) -> None:
        features = self.problem.features
        for name in self.drop:
            if name not in features:
                raise UnknownName("feature", name, features)
        if len(self.drop) == len(features):
            raise ValueError("drop leaves no feature.")

    @property
    def columns(self) -> tuple[str, ...]:
        return self._encoding.columns

    @property
    def categories(self) -> tuple[range, ...]:
        return self._encoding.categories

    def encoder(self, seed: int) -> Encoder:
        """Of the columns of the census in the coding of 2018; the classes are the answers to the dataset's question."""
        rows = self._rows(self.source)
        return self._fit(rows, self._chosen(seed, rows))

    def train(self, seed: int) -> Sequence[Environment]:
        rows = self._rows((*self.source, *self._targets))  # faults of test states are found before any work
        encoder = self._fit(rows, self._chosen(seed, rows))
        return [
            _environment(state, rows[state], encoder, self._split(seed, state, len(rows[state]))[0])
            for state in self.source
        ]

    def validation(self, seed: int) -> Sequence[Environment]:
        rows = self._rows(self.source)
        encoder = self._fit(rows, self._chosen(seed, rows))
        return [
            _environment(state, rows[state], encoder, self._split(seed, state, len(rows[state]))[1])
            for state in self.source
        ]

    def test(self, seed: int) -> Sequence[Environment]:
        rows = self._rows((*self.source, *self._targets))
        encoder = self._fit(rows, self._chosen(seed, rows))
        return [_environment(state, rows[state], encoder, slice(None)) for state in self._targets]

    def all_train(self, seed: int) -> tuple[Sequence[Environment], Encoder]:
        """All rows of the source states, for every seed."""
        rows = self._rows(self.source)
        encoder = self._fit(rows, {state: np.arange(len(people)) for state, people in rows.items()})
        return [_environment(state, people, encoder, slice(None)) for state, people in rows.items()], encoder

    @property
    def _targets(self) -> tuple[str, ...]:
        """The test states, in order; `others` stands for the states that are not named."""
        others = [state for state in STATES if state not in self.source]
        listed = [state for name in self.target for state in (others if name == OTHERS else [name])]
        return tuple(state for state in dict.fromkeys(listed) if state not in self.leave_out)

    @property
    def _person_files(self) -> list[PersonFile]:
        return [PersonFile(self.year, self.horizon, state) for state in (*self.source, *self._targets)]

    def _rows(self, states: Sequence[str]) -> dict[str, Persons]:
        missing = CENSUS.missing(self._person_files)
        if missing:
            names = ", ".join(file.state for file in missing[:4]) + (", ..." if len(missing) > 4 else "")
            raise UnusableData(
                f"{len(missing)} of {len(self._person_files)} census files of {self.year} {self.horizon} are missing "
                f"in {CENSUS.folder}: {names}.\nFetch them: {remedy_for(missing)}"
            )
        rows = load_states(self.problem, [PersonFile(self.year, self.horizon, state) for state in states])
        for state, people in rows.items():
            self._check_columns(state, people)
        return rows

    def _check_columns(self, state: str, rows: Persons) -> None:
        lacking = [name for name in self._features if name not in rows.columns]
        if lacking:
            drop = ",".join([*self.drop, *lacking])
            raise UnusableData(
                f"the census file of {state} {self.year} lacks the columns {', '.join(lacking)}.\n"
                f"Fetch the published file, or leave the columns out everywhere: --set drop={drop}"
            )

    @property
    def _features(self) -> tuple[str, ...]:
        return tuple(name for name in self.problem.features if name not in self.drop)

    @property
    def _encoding(self) -> Codes | Categories:
        kind = Codes if self.encoding == "codes" else Categories
        return kind(self._features, self.problem.may_be_missing, self.missing)

    def _chosen(self, seed: int, rows: dict[str, Persons]) -> dict[str, NDArray[np.int64]]:
        """The training rows of the seed."""
        return {state: self._split(seed, state, len(rows[state]))[0] for state in self.source}

    def _fit(self, rows: dict[str, Persons], chosen: Mapping[str, NDArray[np.int64]]) -> Encoder:
        """The encoder, fitted on these rows and nothing else."""
        labels = np.concatenate([rows[state].label[index] for state, index in chosen.items()])
        if len(np.unique(labels)) < 2:
            raise UnusableData(
                f"all {len(labels)} training rows from {', '.join(self.source)} have the label {labels[0]}.\n"
                "Raise train_rows, or choose another source."
            )
        steps = self._encoding.fit(
            {
                name: np.concatenate([rows[state].columns[name][index] for state, index in chosen.items()])
                for name in self._features
            }
        )
        return Encoder(tuple(RawColumn(name, "number") for name in self._encoding.raw), steps, ANSWERS)

    def _split(self, seed: int, state: str, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which rows of a source state are for training, and which for validation."""
        if rows <= self.train_rows:
            raise UnusableData(
                f"{state} has {rows} rows: train_rows={self.train_rows} leaves none to validate on.\nLower train_rows."
            )
        order = self.rng(seed, f"split {state}").permutation(rows)
        end = None if self.validation_rows is None else self.train_rows + self.validation_rows
        return order[: self.train_rows], order[self.train_rows : end]


def _environment(state: str, rows: Persons, encoder: Encoder, index: Any) -> Environment:
    chosen = {name: values[index] for name, values in rows.columns.items()}
    return Environment(state, encoder.encode(chosen), rows.label[index])


@dataclass(frozen=True)
class AcsTravel(Acs):
    """Does a commute take longer than 20 minutes? Trained in one state, tested in the others (ACSTravelTime).

    Without census files it uses synthetic rows, under the name acs_travel@synthetic.
    """

    problem = Problem("ACSTravelTime", ("AGEP", "PWGTP", "ESR"), ("ESP", "POVPIP"))
    tiny = {"data": "synthetic", "train_rows": 200, "validation_rows": 200, "target": ("RI", "VT")}

    home: Literal["label0", "drop"] = setting(
        "label0", "people who work from home: label0: no long commute, as in folktables; drop: dropped"
    )
    data: Literal["auto", "real", "synthetic"] = setting(
        "auto",
        "real: census files; synthetic: sampled from a model of them; auto: real if the files are present",
        named=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        stated = (self.year, self.horizon) == (Acs.year, Acs.horizon) and {*self.source, *self._targets} <= set(STATES)
        if self.data == "synthetic" and not stated:
            raise ValueError("data=synthetic has the 50 states and no years: do not set year, horizon, DC or PR.")
        if self.data == "auto":  # decided once: files that come during a run change nothing in it
            synthetic = stated and bool(CENSUS.missing(self._person_files))
            object.__setattr__(self, "data", "synthetic" if synthetic else "real")

    @property
    def variant(self) -> str:
        return "" if self.data == "real" else self.data

    @property
    def notice(self) -> str:
        if self.data == "real":
            return ""
        return (
            "the rows are synthetic, sampled from a model of census data. "
            "`oodbench data fetch acs_travel` fetches the census files."
        )

    def _rows(self, states: Sequence[str]) -> dict[str, Persons]:
        rows = {state: _draw(state) for state in states} if self.data == "synthetic" else super()._rows(states)
        return rows if self.home == "label0" else {state: _commuters(state, people) for state, people in rows.items()}


def _commuters(state: str, rows: Persons) -> Persons:
    """Those who were asked how long they commute."""
    keep = ~rows.unanswered
    if not keep.any():
        raise UnusableData(f"home=drop leaves no rows of {state}.\nLeave {state} out.")
    return Persons(
        {name: values[keep] for name, values in rows.columns.items()}, rows.label[keep], rows.unanswered[keep]
    )


@functools.lru_cache(maxsize=64)
def _draw(state: str) -> Persons:
    """The synthetic population of a state: the same for every seed, as the real one is."""
    from oodbench_datasets.acs import synthetic

    rng = np.random.default_rng([*b"acs_travel", *state.encode()])
    drawn = synthetic.draw_state(state, synthetic.ROWS[state], rng)
    return persons(select(AcsTravel.problem, drawn))


@dataclass(frozen=True)
class AcsIncome(Acs):
    """Does a person earn more than 50,000 dollars a year? Trained in one state, tested in the others (ACSIncome)."""

    problem = Problem("ACSIncome", ("AGEP", "PINCP", "WKHP", "PWGTP"), ())


@dataclass(frozen=True)
class AcsPublicCoverage(Acs):
    """Has a person under 65 of low income public health insurance? Tested in other states (ACSPublicCoverage)."""

    problem = Problem("ACSPublicCoverage", ("AGEP", "PINCP"), ("ESP", "MIL", "ESR", "FER"))


@dataclass(frozen=True)
class AcsMobility(Acs):
    """Has a young adult stayed in one home for a year? Trained in one state, tested in the others (ACSMobility)."""

    problem = Problem("ACSMobility", ("AGEP",), ("ESP", "GCL", "COW", "WKHP", "JWMNP"))


@dataclass(frozen=True)
class AcsEmployment(Acs):
    """Is a person employed? Trained in one state, tested in the others (ACSEmployment)."""

    problem = Problem("ACSEmployment", (), ("SCHL", "ESP", "MIG", "MIL", "DREM"))
