"""The synthetic census sample: its codes and its rates."""

from __future__ import annotations

import hashlib
import importlib.util
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from oodbench.errors import UnknownName
from oodbench_datasets.acs.states import FIPS, FITTED
from oodbench_datasets.acs.synthetic import PARAMETERS, POOLED, ROWS, STATES, draw_state
from places import ROOT

Columns = dict[str, NDArray[np.float64]]

VALID = {  # the 2018 dictionary, as far as it applies to people of 17 and older who are at work
    "AGEP": range(17, 100),
    "SCHL": range(1, 25),
    "MAR": range(1, 6),
    "SEX": (1, 2),
    "DIS": (1, 2),
    "ESP": (None,),
    "MIG": (1, 2, 3),
    "RELP": (0, 1, 17),
    "RAC1P": range(1, 10),
    "PUMA": range(100, 100_000),
    "CIT": range(1, 6),
    "OCCP": range(10, 9831),
    "JWTR": range(1, 13),
    "POWPUMA": (None,),
    "POVPIP": (None, *range(502)),
    "JWMNP": (None, *range(1, 201)),
    "PWGTP": (1,),
    "ESR": (1,),
}


@pytest.fixture(scope="module")
def sample() -> dict[str, Columns]:
    return {state: draw_state(state, ROWS[state], np.random.default_rng(FIPS[state])) for state in STATES}


def long_commutes(columns: Columns) -> NDArray[np.bool_]:
    return columns["JWMNP"] > 20


def test_small_and_without_pickle() -> None:
    assert PARAMETERS.stat().st_size < 1_000_000
    with np.load(PARAMETERS, allow_pickle=False) as parameters:
        assert all(parameters[name].dtype.kind in "iu" for name in parameters)


def test_fifty_states_and_their_rows() -> None:
    assert len(STATES) == 50
    assert list(STATES) == sorted(set(STATES))
    assert "DC" not in STATES
    assert set(ROWS) == set(STATES)
    assert 250_000 <= sum(ROWS.values()) <= 400_000
    assert ROWS["MA"] >= 20_000


def test_a_whole_sample_is_drawn_quickly() -> None:
    draw_state("MA", 10, np.random.default_rng(0))  # reads the parameters
    start = time.perf_counter()
    for state in STATES:
        draw_state(state, ROWS[state], np.random.default_rng(0))
    assert time.perf_counter() - start < 10  # under one second on an idle core


@pytest.mark.parametrize("state", STATES)
def test_every_value_is_a_census_code(state: str, sample: dict[str, Columns]) -> None:
    columns = sample[state]
    assert set(columns) == {*VALID, "ST"}
    assert (columns["ST"] == FIPS[state]).all()
    for name, valid in VALID.items():
        values = columns[name]
        assert values.dtype == np.float64
        assert values.shape == (ROWS[state],)
        missing = np.isnan(values)
        assert None in valid or not missing.any(), name
        assert np.isin(values[~missing], [code for code in valid if code is not None]).all(), name
    assert np.array_equal(np.isnan(columns["JWMNP"]), columns["JWTR"] == 11)  # they work from home


@pytest.mark.parametrize("state", ["MA", "CA"])
def test_the_same_generator_gives_the_same_rows(state: str) -> None:
    first, again, other = (draw_state(state, 500, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(first[name], again[name], equal_nan=True) for name in first)
    assert not np.array_equal(first["OCCP"], other["OCCP"])


def test_the_same_on_any_machine() -> None:
    digest = hashlib.sha256()
    for state in ("MA", "CA"):
        columns = draw_state(state, 1000, np.random.default_rng(0))
        for name in sorted(columns):
            digest.update(np.nan_to_num(columns[name], nan=-1).astype("<i8").tobytes())
    assert digest.hexdigest()[:16] == PINNED


PINNED = "5dfb6807e93a49fc"


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_few_rows(rows: int) -> None:
    for state in ("MA", "TX"):
        assert {len(values) for values in draw_state(state, rows, np.random.default_rng(0)).values()} == {rows}


def test_an_unknown_state() -> None:
    with pytest.raises(UnknownName, match="MA"):
        draw_state("MAA", 10, np.random.default_rng(0))


def test_rates_are_those_of_the_fitted_rows(sample: dict[str, Columns]) -> None:
    with np.load(PARAMETERS, allow_pickle=False) as parameters:
        labels = parameters["labels"]  # [state, (home, up to 20 minutes, longer)]
    for state, (home, _, longer) in zip(FITTED, labels / labels.sum(axis=1, keepdims=True), strict=True):
        assert abs(long_commutes(sample[state]).mean() - longer) < 0.005, state
        assert abs(np.isnan(sample[state]["JWMNP"]).mean() - home) < 0.005, state


def test_states_differ(sample: dict[str, Columns]) -> None:
    rates = {state: long_commutes(sample[state]).mean() for state in FITTED}
    assert max(rates, key=rates.__getitem__) == "NY"
    assert max(rates.values()) - min(rates.values()) > 0.2
    assert not set(sample["MA"]["PUMA"]) >= set(sample["NY"]["PUMA"])


def test_columns_depend_on_each_other(sample: dict[str, Columns]) -> None:
    """Known things about people, none of which a column alone could show."""
    ma, ny = sample["MA"], sample["NY"]
    young = ma["AGEP"] < 25
    assert (ma["MAR"][young] == 5).mean() > 0.9  # never married
    assert (ma["MAR"][~young] == 5).mean() < 0.5
    degree = ma["SCHL"] >= 21
    assert np.nanmean(ma["POVPIP"][degree]) > np.nanmean(ma["POVPIP"][~degree]) + 50
    assert np.isnan(ma["JWMNP"][degree]).mean() > 1.5 * np.isnan(ma["JWMNP"][~degree]).mean()
    drives, subway = ny["JWTR"] == 1, ny["JWTR"] == 4
    assert long_commutes(ny)[subway].mean() > long_commutes(ny)[drives].mean() + 0.3
    assert len(np.unique(ny["PUMA"][subway])) < len(np.unique(ny["PUMA"][drives]))
    teachers = (ma["OCCP"] >= 2300) & (ma["OCCP"] < 2330)
    assert (ma["SCHL"][teachers] >= 21).mean() > 0.7


def test_pooled_states_are_their_neighbours(sample: dict[str, Columns]) -> None:
    assert set(POOLED) == {"CA", "TX"}
    for state, neighbours in POOLED.items():
        rates = [long_commutes(sample[neighbour]).mean() for neighbour in neighbours]
        assert min(rates) - 0.01 < long_commutes(sample[state]).mean() < max(rates) + 0.01
        known = np.concatenate([sample[neighbour]["PUMA"] for neighbour in neighbours])
        assert np.isin(sample[state]["PUMA"], known).mean() > 0.99
        first = np.isin(sample[state]["PUMA"], sample[neighbours[0]]["PUMA"])  # neighbours are mixed, not in turn
        half = ROWS[state] // 2
        assert abs(first[:half].mean() - first[half:].mean()) < 0.05


@pytest.fixture(scope="module")
def fitting() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fit", ROOT / "datasets" / "fit_acs_synthetic.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@given(shares=st.lists(st.floats(0, 1), min_size=1, max_size=200).filter(lambda shares: sum(shares) > 1e-3))
def test_shares_become_integers(shares: list[float], fitting: ModuleType) -> None:
    exact = np.array(shares) / np.sum(shares) * 4096
    weights = fitting.to_integers(np.array(shares), 4096)
    assert weights.sum() == 4096
    assert (np.abs(weights - exact) < 1 + 1e-6).all()
    assert (weights[exact == 0] == 0).all()


def test_fitting_gives_the_same_bytes_again(fitting: ModuleType, tmp_path: Path) -> None:
    """Fitted to a sample of the model itself, in the coding of the 2024 files."""
    import pandas as pd

    drawn = [draw_state(state, 1500, np.random.default_rng(FIPS[state])) for state in FITTED]
    people = pd.concat([pd.DataFrame(columns) for columns in drawn])
    people["RELP3"] = people["RELP"].map({0: 1, 1: 2, 17: 3})
    people["JWTRNS"] = people["JWTR"].replace({4: 3, 5: 4, 3: 5})
    people.astype("Int64").to_parquet(tmp_path / "people.parquet")
    for name in ("first.npz", "again.npz"):
        fitting.fit(tmp_path / "people.parquet", tmp_path / name)
    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    with np.load(tmp_path / "first.npz") as fitted, np.load(PARAMETERS) as shipped:
        assert set(fitted) == set(shipped)
        assert (fitted["classes"] > 3).any()  # several of one label
        assert (fitted["labels"][:, 2] == [long_commutes(columns).sum() for columns in drawn]).all()
        assert set(fitted["JWTR_codes"]) <= set(shipped["JWTR_codes"])
