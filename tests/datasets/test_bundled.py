"""Tables that come with installed packages: their environments, and how their rows are split and scaled."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from oodbench import check_dataset
from oodbench.errors import InvalidSetting
from oodbench_datasets import bundled
from oodbench_datasets.bundled import SOURCES, Bundled

SIZES = {  # rows of the training and of the test environments
    "diabetes_by_age": ([117, 97], [125, 103]),
    "diabetes_by_sex": ([235], [207]),
    "fair_by_religion": ([2267, 2422], [1021, 656]),
    "grunfeld_by_firm": ([20] * 6, [20] * 5),
    "randhie_by_plan": ([4065, 1401, 2653], [6822, 5249]),
}
INSTALLED = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(find_spec(source.library) is None, reason=f"{source.library} is not installed"),
    )
    for name, source in SOURCES.items()
]


def test_conforms() -> None:
    check_dataset(Bundled)


@pytest.mark.parametrize("data", INSTALLED)
def test_rows_of_every_table(data: Any) -> None:
    table = Bundled(data=data)
    train, validation, test = table.train(0), table.validation(0), table.test(0)
    together = [len(own) + len(held_out) for own, held_out in zip(train, validation, strict=True)]
    assert (together, [len(environment) for environment in test]) == SIZES[data]
    for held_out, rows in zip(validation, together, strict=True):
        assert abs(len(held_out) - 0.3 * rows) <= 0.5
    x = np.concatenate([environment.x for environment in train])
    assert x.shape[1] == len(table.columns)
    assert np.allclose(x.mean(0), 0, atol=1e-9)
    assert np.allclose(x.std(0), 1)
    if table.task == "regression":
        y = np.concatenate([environment.y for environment in train])
        assert (y.mean(), y.std()) == pytest.approx((0, 1))
    again = np.concatenate([environment.x for environment in table.train(1)])
    assert not np.array_equal(x, again)  # a seed draws what is held out


def test_no_row_is_for_training_and_for_validation() -> None:
    table = Bundled()
    rows = {tuple(row) for part in (table.train(0), table.validation(0)) for own in part for row in own.x.round(9)}
    assert len(rows) == sum(len(own) for part in (table.train(0), table.validation(0)) for own in part)


def test_a_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "find_spec", lambda library: None)
    with pytest.raises(
        InvalidSetting, match=r"data=fair_by_religion needs statsmodels, which is not installed.\nInstall"
    ):
        Bundled(data="fair_by_religion")
