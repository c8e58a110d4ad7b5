"""From codes to features: what training rows decide, and what no other row can change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from oodbench.encoder import Encoder, RawColumn
from oodbench_datasets.acs.datasets import AcsEmployment, AcsIncome, AcsMobility, AcsPublicCoverage, AcsTravel
from oodbench_datasets.acs.encoding import GEOGRAPHY, GROUPS, LEVELS, NUMBERS, Categories, Codes

FEATURES = ("AGEP", "POVPIP", "RELP", "JWTR", "OCCP", "PUMA")


def table(rows: np.ndarray) -> dict[str, np.ndarray]:
    """Two numbers with gaps, codes with gaps and beyond the dictionary."""
    columns = {
        "AGEP": rows[:, 0] % 90,
        "POVPIP": np.where(rows[:, 1] % 3 == 0, np.nan, rows[:, 1]),
        "RELP": rows[:, 2] % 20,
        "JWTR": np.where(rows[:, 3] % 4 == 0, np.nan, rows[:, 3] % 12),
        "OCCP": rows[:, 4] * 10,
        "PUMA": rows[:, 5],
    }
    return {name: values.astype(np.float32) for name, values in columns.items()}


Table = dict[str, np.ndarray]


def encode(encoding: Codes | Categories, train: Table, rows: Table) -> np.ndarray:
    encoder = Encoder(tuple(RawColumn(name, "number") for name in encoding.raw), encoding.fit(train))
    assert encoder.names == encoding.columns
    return encoder.encode(rows)


tables = arrays.arrays(np.int64, st.tuples(st.integers(2, 40), st.just(6)), elements=st.integers(0, 990)).map(table)


@given(tables, tables)
def test_codes_are_standardised_by_training_rows_alone(train: Table, other: Table) -> None:
    encoder = Codes(FEATURES, ("POVPIP",), "indicator")
    assert encoder.columns == (*FEATURES, "POVPIP_missing")
    x = encode(encoder, train, train)
    varies = x.std(0) > 1e-9
    assert np.allclose(x.mean(0), 0, atol=1e-6)
    assert np.allclose(x.std(0)[varies], 1, atol=1e-6)
    assert np.isfinite(x).all()
    scaled = encode(encoder, train, other)
    for index, name in enumerate(FEATURES):
        known = train[name][np.isfinite(train[name])].astype(float)
        fill = np.median(known) if len(known) else 0.0
        seen, filled = (np.nan_to_num(rows[name].astype(float), nan=fill) for rows in (train, other))
        expected = (filled - seen.mean()) / seen.std() if seen.std() > 0 else np.zeros(len(filled))
        assert np.allclose(scaled[:, index], expected, atol=1e-5)


@given(tables)
def test_folktables_makes_missing_zero_and_marks_nothing(train: Table) -> None:
    encoder = Codes(FEATURES, ("POVPIP",), "folktables")
    assert encoder.columns == FEATURES
    zeros = {name: np.nan_to_num(values) for name, values in train.items()}
    assert np.array_equal(encode(encoder, train, train), encode(encoder, train, zeros))


@given(tables, tables)
def test_levels_come_from_training_rows_alone(train: Table, other: Table) -> None:
    encoder = Categories(FEATURES, ("POVPIP", "JWTR"), "indicator")
    x = encode(encoder, train, other)
    assert x.shape == (len(other["AGEP"]), len(encoder.columns))
    assert not any(name.startswith("PUMA") for name in encoder.columns)
    for name in ("RELP", "JWTR", "OCCP"):
        columns = [index for index, column in enumerate(encoder.columns) if column.startswith(f"{name}=")]
        levels = {encoder.columns[index]: x[:, index] for index in columns}
        constant = encoder.all_levels(name).encode(train[name]).any(0).sum() == 1
        assert np.all(x[:, columns].sum(1) == (0 if constant else 1))
        assert np.isin(x[:, columns], (0, 1)).all()
        if name == "RELP" and not constant:
            for row, code in enumerate(other["RELP"]):
                seen = code in train["RELP"] and code < 18
                assert levels[f"RELP={int(code)}" if seen else "RELP=other"][row] == 1
        if name == "JWTR" and not constant and np.isnan(train["JWTR"]).any():
            assert np.array_equal(levels["JWTR=missing"] == 1, np.isnan(other["JWTR"]))


@pytest.mark.parametrize(
    ("code", "group"), [(10, "0"), (430, "0"), (500, "500"), (2205, "2200"), (3655, "3600"), (9920, "9900")]
)
def test_occupations_fall_into_their_major_groups(code: int, group: str) -> None:
    encoder = Categories(("OCCP",), (), "indicator")
    (position,) = encoder.all_levels("OCCP").encode(np.array([code], dtype=np.float32))[0].nonzero()[0]
    assert encoder.levels["OCCP"][position] == group


@pytest.mark.parametrize("dataset", [AcsTravel, AcsIncome, AcsPublicCoverage, AcsMobility, AcsEmployment])
def test_every_feature_has_a_place(dataset: Any) -> None:
    known = {*NUMBERS, *GEOGRAPHY, *GROUPS, *LEVELS}
    assert set(dataset.problem.features) <= known
    assert set(dataset.problem.may_be_missing) <= set(dataset.problem.features)
