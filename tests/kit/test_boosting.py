"""The weights that reach a library, with a library that writes down what it gets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from oodbench import Option, Preset, TrainingRows
from oodbench.errors import InvalidSetting
from oodbench.kit import BOOSTING_OPTIONS, BOOSTING_PRESETS, Part, check_weights, fit_boosting, needs_of_weights

X = np.arange(40.0)[:, None]
Y = (np.arange(40) % 4 == 0).astype(np.int64)
ENVIRONMENT = (np.arange(40) < 8).astype(np.int64)


class AlwaysZero:
    def predict(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.zeros(len(x), np.int64)


def weights_seen(how: str, own: NDArray[np.float64] | None = None) -> list[Any]:
    """The weights of all rows, in their order, or None, of every fit."""
    seen: list[Any] = []

    def grow(rows: Part, stopping: Part, hparams: dict[str, Any]) -> AlwaysZero:
        assert hparams == {"depth": 3}
        x = np.concatenate([rows.x, stopping.x])[:, 0]
        assert sorted(x) == sorted(X[:, 0])
        assert 0 < len(stopping.x) < len(rows.x) / 4
        if rows.weights is None or stopping.weights is None:
            assert rows.weights is stopping.weights
            seen.append(None)
        else:
            seen.append(np.concatenate([rows.weights, stopping.weights])[np.argsort(x)])
        return AlwaysZero()

    train = TrainingRows(X, Y, "classification", 2, ENVIRONMENT, weights=own)
    fit_boosting(grow, "sklearn", train, {"depth": 3, "weights": how, "upweight": 7.0}, 1)
    return seen


def test_no_weights_are_none() -> None:
    assert weights_seen("none") == [None]


@pytest.mark.parametrize("own", [None, np.arange(40) % 3 + 1.0])
def test_weights_by_group_and_by_error(own: NDArray[np.float64] | None) -> None:
    factor = np.ones(40) if own is None else own
    for how, groups in {"environment": ENVIRONMENT, "class": Y, "both": 2 * ENVIRONMENT + Y}.items():
        (found,) = weights_seen(how, own)
        totals = np.bincount(groups, factor)
        np.testing.assert_allclose(found, factor * factor.sum() / np.count_nonzero(totals) / totals[groups])
    first, second = weights_seen("jtt", own)
    assert first is None if own is None else np.array_equal(first, own)
    np.testing.assert_allclose(second, np.where(Y == 1, 7.0, 1.0) * factor)


def test_every_way_to_weigh_has_a_preset() -> None:
    presets = {name: Preset(**preset) for name, preset in BOOSTING_PRESETS.items()}
    ways = [preset.fix["weights"] for preset in presets.values()]
    assert ways == list(presets)
    options = BOOSTING_OPTIONS["weights"]
    assert isinstance(options, Option)
    assert {"none", *ways} == set(options.values)


def test_what_is_told_and_what_is_refused() -> None:
    told = {how: needs_of_weights({"weights": how}) for how in ("none", "class", "jtt", "environment", "both")}
    assert {how for how, needs in told.items() if needs} == {"environment", "both"}
    regression = TrainingRows(X, X[:, 0], "regression", 2, ENVIRONMENT)
    for how in ("none", "environment"):
        check_weights(regression, {"weights": how})
    for how in ("class", "both", "jtt"):
        with pytest.raises(InvalidSetting, match=f"weights={how} is for classification.\nUse"):
            check_weights(regression, {"weights": how})
