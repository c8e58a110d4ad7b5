"""Environments of a table: several columns, ranges, quantiles, roles, and small ones."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oodbench.errors import UserError
from oodbench.settings.fields import configure
from oodbench_datasets.table.ranges import parse_bins, parse_range, quantile_ranges
from oodbench_datasets.table.table import Table

ROWS = 800


def make_frame() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "state": rng.choice(["MA", "NY", "CA"], ROWS, p=[0.5, 0.46, 0.04]),
            "year": rng.integers(2010, 2018, ROWS),
            "x": rng.normal(size=ROWS),
            "y": rng.normal(size=ROWS),
        }
    )


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "t.csv"
    make_frame().to_csv(path, index=False)
    return path


def table(path: Path, **settings: Any) -> Table:
    return configure(Table, {"path": str(path), "target": "y", "least_rows": 2} | settings, "dataset 'table'")


def sizes(data: Table) -> dict[str, dict[str, int]]:
    """Rows of the environments of every role, as `show` says them."""
    roles: dict[str, dict[str, int]] = {}
    for row in data.describe_data()["environments"]:
        roles.setdefault(str(row["role"]), {})[str(row["environment"])] = int(str(row["rows"]))
    return roles


def counts(frame: pd.DataFrame, *columns: str) -> dict[str, int]:
    keys = frame[list(columns)].astype(str).agg("/".join, axis=1)
    return {str(name): int(count) for name, count in keys.value_counts().items()}


def test_several_columns_make_an_environment(csv: Path) -> None:
    data = table(csv, environment="state,year", train="MA/*", test="NY/2016,NY/2017")
    expected = counts(make_frame(), "state", "year")
    assert sizes(data) == {
        "train, validation": {name: count for name, count in expected.items() if name.startswith("MA/")},
        "test": {name: expected[name] for name in ("NY/2016", "NY/2017")},
    }
    assert data.columns == ("x",)
    assert [one.name for one in data.train(0)] == [f"MA/{year}" for year in range(2010, 2018)]


def test_ranges_in_roles(csv: Path) -> None:
    data = table(csv, environment="year", train="<2013", validation="2013", test="2014-2015,2017")
    expected = counts(make_frame(), "year")
    assert sizes(data) == {
        role: {year: expected[year] for year in years}
        for role, years in {
            "train": ["2010", "2011", "2012"], "validation": ["2013"], "test": ["2014", "2015", "2017"],
        }.items()
    }  # fmt: skip
    assert {"rows": "left out: environment in no role", "count": expected["2016"]} in data.describe_data()["rows"]


def test_validation_environments_are_used_whole_or_sampled(csv: Path) -> None:
    frame = make_frame()
    data = table(csv, environment="year", train="<2013", validation="2013", drop="state")
    (validation,) = data.validation(0)
    train = np.concatenate([one.x for one in data.train(0)])
    assert abs(train.mean()) < 1e-12
    values = frame.loc[frame["year"] == 2013, "x"]
    slope, offset = np.polyfit(validation.x[:, 0], values, 1)
    assert np.allclose(slope * validation.x[:, 0] + offset, values)
    few = table(csv, environment="year", train="<2013", validation="2013,2014", validation_rows=9)
    assert [(one.name, len(one)) for one in few.validation(1)] == [("2013", 9), ("2014", 9)]
    assert not np.array_equal(few.validation(1)[0].x, few.validation(2)[0].x)


def test_the_rest_has_a_role(csv: Path) -> None:
    data = table(csv, environment="state", train="rest", test="NY")
    assert {role: set(names) for role, names in sizes(data).items()} == {
        "train, validation": {"MA", "CA"},
        "test": {"NY"},
    }


def test_bins_make_environments(csv: Path) -> None:
    data = table(csv, environment="year", bins="year=<2012|2012-2014|>=2016", train="<2012")
    year = make_frame()["year"]
    assert sizes(data) == {
        "train, validation": {"<2012": (year < 2012).sum()},
        "test": {"2012-2014": year.between(2012, 2014).sum(), ">=2016": (year >= 2016).sum()},
    }
    assert {"rows": "left out: in no range of bins", "count": (year == 2015).sum()} in data.describe_data()["rows"]
    both = table(csv, environment="state,year", bins="year=<2014|>=2014", train="MA/<2014")
    expected = counts(make_frame().assign(year=np.where(year < 2014, "<2014", ">=2014")), "state", "year")
    assert {name: count for names in sizes(both).values() for name, count in names.items()} == expected


def test_quantiles_make_environments(csv: Path) -> None:
    data = table(csv, environment="x", bins="x=quantiles 4", train="q1,q2", numeric="year")
    assert sizes(data) == {"train, validation": {"q1": 200, "q2": 200}, "test": {"q3": 200, "q4": 200}}


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60), st.integers(2, 6))
def test_every_value_is_in_one_quantile(values: list[float], count: int) -> None:
    ranges = quantile_ranges(np.array(values), count)
    if ranges is not None:
        inside = np.stack([part.holds(np.array(values)) for part in ranges])
        assert (inside.sum(0) == 1).all()
        assert inside.any(1).all()


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=5, unique=True), st.floats(-60, 60))
def test_ranges_that_meet_divide_the_line(edges: list[int], value: float) -> None:
    edges.sort()
    middle = [f"{low}-<{high}" for low, high in itertools.pairwise(edges)]
    (bins,) = parse_bins([f"v={'|'.join([f'<{edges[0]}', *middle, f'>={edges[-1]}'])}"]).values()
    held = [bool(part.holds(np.array([value]))[0]) for part in bins.ranges]
    assert held.index(True) == np.searchsorted(edges, value, side="right")
    assert sum(held) == 1


def test_negative_numbers_in_ranges() -> None:
    found = parse_range("-5--2")
    assert found is not None
    assert (found.low, found.high) == (-5, -2)
    assert parse_range("2010-") is None


def test_small_environments_are_skipped_or_merged(csv: Path) -> None:
    expected = counts(make_frame(), "state", "year")
    small = {name: count for name, count in expected.items() if count < 20}
    assert small
    options = {"environment": "state,year", "train": "MA/*", "least_rows": 20}
    skipped = table(csv, small="skip", **options)
    assert set(sizes(skipped)["test"]) == {name for name in expected if name[:2] != "MA"} - set(small)
    assert {"rows": "left out: environment too small", "count": sum(small.values())} in skipped.describe_data()["rows"]
    merged = table(csv, small="merge", **options)
    assert sizes(merged)["test"]["small environments"] == sum(small.values())
    assert sum(len(one) for one in merged.test(0)) == sum(sizes(merged)["test"].values())


BAD = [
    ({"bins": "year=<2013|2012-2015", "train": "<2013"}, "<2013 and 2012-2015 overlap"),
    ({"bins": "year=2010-2012|2012-2015", "train": "x"}, "2010-2012 and 2012-2015 overlap"),
    ({"bins": "year=>=2013|<2013", "train": "<2013"}, "<2013 is not above >=2013"),
    ({"bins": "year=2015-2012", "train": "x"}, "the range 2015-2012 is empty"),
    ({"bins": "year=<2000|>=2000", "train": ">=2000"}, "no row with a target has 'year' in the range <2000"),
    ({"bins": "year=quantiles 40", "train": "q1"}, "column 'year' has too many equal values for 40 quantiles"),
    ({"bins": "year=soon", "train": "x"}, "bins=year=soon cannot be read"),
    ({"bins": "state=<2|>3", "environment": "state", "train": "x"}, "column 'state' must hold numbers"),
    ({"bins": "x=<2|>3", "train": "2010"}, "bins has column 'x', which is not in environment"),
    ({"train": "<2013", "test": "2012-2014"}, "environment '2012' is both in train and in test"),
    ({"train": "2010", "validation": "2010"}, "environment '2010' is both in train and in validation"),
    ({"train": "rest", "test": "rest"}, "environment 'rest' is both in train and in test"),
    ({"train": "<2000"}, "column 'year' has no environment '<2000'"),
    ({"train": "<=2016", "validation": "2017"}, "none is left to test on"),
    ({"train": "MA", "environment": "state,yaer"}, "Did you mean 'year'?"),
    ({"train": "MA/2010", "environment": "state,state"}, "column 'state' is twice in environment"),
    ({"train": "2010", "least_rows": "790", "small": "skip"}, "no environment of train has least_rows=790 rows"),
    ({"train": "2010", "least_rows": "790", "small": "merge"}, "environment 'small environments' has"),
]


@pytest.mark.parametrize(("settings", "expected"), BAD)
def test_mistakes_are_told_in_two_lines(csv: Path, settings: dict[str, str], expected: str) -> None:
    with pytest.raises(UserError) as caught:
        _ = table(csv, **{"environment": "year"} | settings).task
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2
