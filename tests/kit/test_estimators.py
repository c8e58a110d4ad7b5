"""Estimators of other libraries in the record: nothing that is loaded can run code."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from oodbench import TrainingRows
from oodbench.errors import InvalidSetting, TrainingFailed
from oodbench.kit import EstimatorModel, require
from oodbench.study.models import how_kept, storable

X = np.random.default_rng(0).normal(size=(60, 2))
ROWS = TrainingRows(X, X[:, 0], "regression", 2)


class Foreign(LinearRegression):  # type: ignore[misc]
    """A type that nobody has audited."""


class Counting(LinearRegression):  # type: ignore[misc]
    asked = 0

    def predict(self, x: Any) -> Any:
        self.asked += 1
        return super().predict(x)


class Deadly:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_type_that_is_not_trusted_is_not_kept() -> None:
    kept = EstimatorModel.wrap(LinearRegression().fit(X, X[:, 0]), "sklearn", ROWS)
    foreign = EstimatorModel.wrap(Foreign().fit(X, X[:, 0]), "sklearn", ROWS)
    assert foreign.arrays() == {}
    assert how_kept({0: kept, 1: kept}) == "loadable"
    assert how_kept({0: kept, 1: foreign}) == "nothing"
    assert list(storable({0: kept, 1: foreign})) == [0]


@pytest.mark.parametrize("evil", ["function", "type", "pickle"])
def test_a_stored_model_that_would_run_code_is_refused(evil: str, tmp_path: Path) -> None:
    estimators = {"function": make_pipeline(FunctionTransformer(os.system), LinearRegression()), "type": Foreign()}
    content = pickle.dumps(Deadly(tmp_path / "ran")) if evil == "pickle" else skops.io.dumps(estimators[evil])
    arrays: dict[str, Any] = {"content": np.frombuffer(content, np.uint8), "labels": np.empty(0, np.int64)}
    with pytest.raises(Exception) as raised:  # noqa: PT011  (of a pickle, what zipfile says)
        EstimatorModel.restore(arrays, {"family": "sklearn", "classes": "2"})
    assert not (tmp_path / "ran").exists()
    if evil != "pickle":
        assert isinstance(raised.value, TrainingFailed)
        assert "not trusted" in str(raised.value)


def test_a_classifier_without_probabilities_has_its_errors_for_a_loss() -> None:
    y = np.array([0, 2])[(X[:, 0] > 0).astype(int)]
    rows = TrainingRows(X, y, "classification", 3)
    model = EstimatorModel.wrap(LinearSVC().fit(X, y // 2), "sklearn", rows)
    assert set(model.predict(X)) == {0, 2}
    assert np.array_equal(model.losses(X, y), (model.predict(X) != y).astype(float))


def test_an_estimator_works_once_for_the_same_rows_and_again_for_changed_ones() -> None:
    model = EstimatorModel.wrap(Counting().fit(X, X[:, 0]), "sklearn", ROWS)
    rows = X.copy()
    first = model.predict(rows)
    assert model.losses(rows, X[:, 0]).max() < 1e-20
    assert model.estimator.asked == 1
    rows[0] += 1
    assert model.predict(rows)[0] == pytest.approx(first[0] + 1)
    assert model.estimator.asked == 2
    assert "_last" not in pickle.loads(pickle.dumps(model)).__dict__


def test_a_library_that_is_not_installed_is_named_with_the_command_to_install_it() -> None:
    with pytest.raises(InvalidSetting, match=r"not installed\.\nInstall it with `pip install 'oodbench\[no_such\]'`"):
        require("no_such")
