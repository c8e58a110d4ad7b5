"""Categories with many levels, ordered levels and conditions for rows, against plain pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oodbench.encoder import Levels
from oodbench.errors import UserError
from oodbench.settings.fields import configure
from oodbench_datasets.table.encoding import TargetMean, level_means, level_shares
from oodbench_datasets.table.table import Table

ROWS = 600


def make_frame() -> pd.DataFrame:
    """`number` finds a row again; the target follows the shop."""
    rng = np.random.default_rng(11)
    shop = rng.integers(0, 60, ROWS)
    frame = pd.DataFrame(
        {
            "place": np.repeat(["a", "b", "c"], ROWS // 3),
            "number": np.arange(ROWS) * 1.5,
            "shop": np.char.add("s", shop.astype(str)).astype(object),
            "size": rng.choice(["small", "medium", "large"], ROWS),
            "pay": shop % 7 + rng.normal(0, 0.1, ROWS),
        }
    )
    frame.loc[rng.random(ROWS) < 0.1, "shop"] = None
    frame.loc[frame["place"].eq("c") & (rng.random(ROWS) < 0.2), "shop"] = "new"
    return frame


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    make_frame().to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def table(path: Path, **settings: Any) -> Table:
    usual = {"path": str(path), "target": "pay", "environment": "place", "train": "a,b"}
    return configure(Table, usual | settings, "dataset 'table'")


def original(data: Table, part: str, seed: int) -> pd.DataFrame:
    """The rows of a part, found by the column that numbers them; `table.train_rows` says nothing of it."""
    split = data._split(seed)
    rows = {"train": [train for train, _ in split.values()], "validation": [rest for _, rest in split.values()]}
    return make_frame().iloc[np.concatenate(rows[part])]


def standardise(values: pd.Series, train: pd.Series) -> pd.Series:
    return (values - train.mean()) / train.std(ddof=0)


def test_the_mean_of_the_target_is_that_of_the_seeds_training_rows(csv: Path) -> None:
    data = table(csv, many_as="target", smoothing=4)
    assert data.columns[1] == "shop mean of target"
    for seed in (0, 1):
        train = original(data, "train", seed)
        sums = train["pay"].groupby(train["shop"].fillna("none")).agg(["sum", "count"])
        means = (sums["sum"] + 4 * train["pay"].mean()) / (sums["count"] + 4)
        for part in ("validation", "test"):
            rows = original(data, part, seed) if part == "validation" else make_frame().iloc[400:]
            expected = rows["shop"].fillna("none").map(means).fillna(train["pay"].mean())
            encoded = np.concatenate([one.x[:, 1] for one in getattr(data, part)(seed)])
            slope, offset = np.polyfit(encoded, expected, 1)
            assert np.allclose(slope * encoded + offset, expected)
        inside = np.concatenate([one.x[:, 1] for one in data.train(seed)])
        assert abs(inside.mean()) < 1e-9
        assert abs(inside.std() - 1) < 1e-9


@pytest.mark.parametrize("many_as", ["frequency", "target"])
def test_other_rows_teach_nothing(tmp_path: Path, many_as: str) -> None:
    """Changed targets and levels of validation and test rows leave the training rows as they are."""
    frame = make_frame()
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = table(tmp_path / "t.csv", many_as=many_as)
    before = data.train(0)
    others = frame.index.difference(original(data, "train", 0).index)
    frame.loc[others, "pay"] = -frame.loc[others, "pay"]
    frame.loc[others, "shop"] = "s1"
    frame.to_csv(tmp_path / "t.csv", index=False)
    after = table(tmp_path / "t.csv", many_as=many_as).train(0)
    for one, other in zip(before, after, strict=True):
        assert np.array_equal(one.x, other.x)


def test_frequencies_are_those_of_the_seeds_training_rows(csv: Path) -> None:
    data = table(csv, many_as="frequency")
    train = original(data, "train", 2)
    shares = train["shop"].fillna("none").value_counts(normalize=True)
    counts = train["shop"].fillna("none").map(shares)
    expected = standardise(make_frame().iloc[400:]["shop"].fillna("none").map(shares).fillna(0), counts)
    assert np.allclose(data.test(2)[0].x[:, 1], expected)
    assert np.allclose(np.concatenate([one.x[:, 1] for one in data.train(2)]), standardise(counts, counts))


LEVELS = st.lists(st.integers(-1, 5), min_size=1, max_size=40)


@settings(deadline=None)
@given(LEVELS, st.just(0.0) | st.floats(0.1, 50), st.randoms(use_true_random=False))
def test_means_and_shares_against_pandas_in_any_order(codes: list[int], smoothing: float, random: Any) -> None:
    y = [random.uniform(-5, 5) for _ in codes]
    frame = pd.DataFrame({"code": [code % 7 for code in codes], "y": y})
    expected = [
        (group.sum() + smoothing * frame["y"].mean()) / (len(group) + smoothing)
        if len(group) + smoothing
        else frame["y"].mean()
        for group in (frame.loc[frame["code"] == level, "y"] for level in range(7))
    ]
    order = random.sample(range(len(codes)), len(codes))
    for rows in (list(range(len(codes))), order):
        shuffled = np.array(codes)[rows]
        means = level_means(shuffled, np.array(y)[rows][:, None], 6, smoothing)
        assert np.allclose(means[:, 0], expected)
        assert np.allclose(level_shares(shuffled, 6), [(frame["code"] == level).mean() for level in range(7)])


def test_a_training_rows_own_target_is_not_in_its_mean() -> None:
    """One row a level: its target could be read off a mean with itself."""
    y = np.random.default_rng(2).normal(size=(200, 1))
    rows = np.arange(200)
    feature = TargetMean("x", Levels(rows, tuple(map(str, rows))), y, ("x",), 1.0)
    assert abs(np.corrcoef(feature.of_training_rows(rows)[:, 0], y[:, 0])[0, 1]) < 0.4
    (step,) = feature.fit(rows)
    assert np.corrcoef(step.encode(feature.column)[:, 0], y[:, 0])[0, 1] > 0.99
    assert np.corrcoef(level_means(rows, y, 200, 1.0)[:-1, 0], y[:, 0])[0, 1] > 0.99


def test_classes_have_a_share_each(csv: Path) -> None:
    data = table(csv, target="size", many_as="target")
    assert data.columns[1:4] == tuple(f"shop share of {size}" for size in ("large", "medium", "small"))
    assert table(csv, positive=">3", many_as="target").columns[1] == "shop share of >3"


def test_many_levels_are_warned_of_and_said(csv: Path) -> None:
    (warning,) = (text for text in table(csv, rare=0.02).warnings if "shop" in text)
    assert "Set many_as=target" in warning
    data = table(csv, many_as="target", ordinal="size=small<medium<large")
    kinds = {row["column"]: row["read as"] for row in data.describe_data()["columns"]}
    assert (kinds["shop"], kinds["size"]) == ("category by target", "ordinal")
    assert "shop mean of target" not in table(csv, many_as="target", many=100).columns


def test_ordered_levels_are_numbers(csv: Path) -> None:
    data = table(csv, ordinal="size=small<medium<large", drop="shop")
    assert data.columns == ("number", "size")
    ranks = make_frame()["size"].map({"small": 0, "medium": 1, "large": 2})
    expected = standardise(ranks[400:], ranks.loc[original(data, "train", 0).index])
    assert np.allclose(data.test(0)[0].x[:, 1], expected)


def test_conditions_for_rows(csv: Path, tmp_path: Path) -> None:
    frame = make_frame()
    kept = frame[(frame["number"] >= 60) & frame["size"].isin(["small", "large"]) & frame["shop"].ne("s3")]
    kept = kept[kept["shop"].notna()]
    kept.to_csv(tmp_path / "kept.csv", index=False)
    data = table(csv, where="number>=60,size=small|large,shop!=s3", drop="number")
    plain = table(tmp_path / "kept.csv", drop="number")
    assert data.columns == plain.columns
    for one, other in zip(data.test(0), plain.test(0), strict=True):
        assert np.array_equal(one.x, other.x)
    assert {"rows": "left out: not in where", "count": ROWS - len(kept)} in data.describe_data()["rows"]


BAD = [
    ({"where": "number"}, "where=number cannot be read"),
    ({"where": "number>many"}, "where=number>many cannot be read"),
    ({"where": "shop>3"}, "in where, column 'shop' must hold numbers"),
    ({"where": "size=smal"}, "there is no value of column 'size' 'smal'. Did you mean 'small'?"),
    ({"where": "numbr>3"}, "Did you mean 'number'?"),
    ({"where": "number<0"}, "fewer than two environments"),
    ({"ordinal": "size"}, "ordinal=size cannot be read"),
    ({"ordinal": "size=small<small"}, "each level once"),
    ({"ordinal": "size=small<large"}, "column 'size' has the level 'medium', which ordinal does not name"),
    ({"ordinal": "size=small<medium<large", "drop": "size"}, "both in drop and in ordinal"),
    ({"many": "1"}, "many must be 2 or more"),
    ({"many_as": "hash"}, "many_as=hash is not one of levels, frequency, target"),
]


@pytest.mark.parametrize(("settings", "expected"), BAD)
def test_mistakes_are_told_in_two_lines(csv: Path, settings: dict[str, str], expected: str) -> None:
    with pytest.raises(UserError) as caught:
        _ = table(csv, **settings).task
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2
