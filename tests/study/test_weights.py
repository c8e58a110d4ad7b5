"""A study on rows with weights is the study on rows that are repeated so often: choice, scores and the constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from concluding import concluded, planned
from oodbench import Dataset, Environment, Method, TrainingRows, metric
from oodbench.engine.data import Task
from oodbench.errors import UserError
from oodbench.study.estimators import estimator_method
from oodbench.study.meter import Meter
from oodbench.study.study import WEIGHTED

BUDGET: dict[str, Any] = {"trials": 4, "seeds": 1}


@dataclass(frozen=True)
class Counted(Dataset):
    """Every row has a weight, or is there so many times."""

    task: ClassVar[Task] = "classification"
    repeated: bool = False

    def _rows(self, seed: int, part: str, names: str) -> list[Environment]:
        rng, made = self.rng(seed, part), []
        for number, name in enumerate(names):
            x, times = rng.normal(size=(40, 2)), rng.permutation(np.resize([1, 2, 3, 4], 40))
            y = (x[:, 0] + number * x[:, 1] + rng.normal(size=40) > (times > 2)).astype(int)
            weights = None if self.repeated else times.astype(float)
            many = Environment(name, x, y, weights)
            made.append(many.take(np.arange(40).repeat(times)) if self.repeated else many)
        return made

    def train(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "train", "abc")

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "validation", "abc")

    def test(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "test", "xy")


@pytest.mark.parametrize("selector", ["worst:auc", "loeo", "importance", "atc"])
def test_a_study_on_weights_is_one_on_repeated_rows(selector: str) -> None:
    some, many = (
        concluded(
            planned("logistic", Counted, selector=selector, **BUDGET, settings={"repeated": repeated}), look=False
        )
        for repeated in (False, True)
    )
    assert some.record.choice is not None
    assert many.record.choice is not None
    assert some.results is not None
    assert many.results is not None
    assert some.record.choice.configuration == many.record.choice.configuration
    unlike = {"rows", "stability", "ods", "ece"}  # ece has quantiles of few rows
    numbers = [name for name in some.results.select_dtypes("number") if name not in unlike]
    np.testing.assert_allclose(some.results[numbers], many.results[numbers], rtol=1e-4, atol=1e-7)
    assert some.record.notice == WEIGHTED
    assert many.record.notice == ""
    assert some.record.data.fingerprint != many.record.data.fingerprint


class Silent(Method):
    def fit(self, train: Any, hparams: Any, seed: int) -> Any:
        raise AssertionError


@pytest.mark.parametrize("method", [Silent, "subsample", "icp", "sklearn:sklearn.neighbors.KNeighborsClassifier"])
def test_a_method_without_weights_is_refused_by_name(method: Any) -> None:
    name = "silent" if method is Silent else method
    with pytest.raises(UserError, match=f"method '{name}' cannot count rows by weights, and 'counted'|does not do"):
        planned(method, Counted, trials=1, seeds=1)


def test_an_estimator_gets_weights() -> None:
    method = estimator_method("sklearn:sklearn.linear_model.LogisticRegression", {})()
    rows = [TrainingRows.pooled(Counted(how).train(0), "classification", 2, False, None) for how in (False, True)]
    some, many = (method.fit(train, {}, 1).outputs(rows[0].x) for train in rows)  # type: ignore[attr-defined]
    np.testing.assert_allclose(some, many, atol=1e-3)


def test_a_metric_without_weights_has_no_value() -> None:
    @metric("classification", better="lower")
    def plain(y: Any, predicted: Any) -> float:
        return 0.0

    class Ones:
        def predict(self, x: Any) -> Any:
            return np.ones(len(x), int)

    (environment, *_) = Counted().train(0)
    meter = Meter({"plain": plain}, 2)
    assert np.isnan(meter.measure(Ones(), environment)["plain"])
    assert meter.missing["plain"] == "environment 'a': rows have weights, and the metric has no parameter weights"


def test_weights_in_one_part_alone_are_refused() -> None:
    @dataclass(frozen=True)
    class Half(Counted):
        def validation(self, seed: int) -> Sequence[Environment]:
            return [Environment(rows.name, rows.x, rows.y) for rows in super().validation(seed)]

    with pytest.raises(Exception, match="training rows have weights, and validation rows have none"):
        planned("erm", Half, trials=1, seeds=1)
