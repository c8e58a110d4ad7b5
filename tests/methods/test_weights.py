"""A row of weight three is three rows, for every method that takes weights of rows; the others are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from formulas import random_rows
from oodbench import (
    Linear,
    LossMethod,
    Method,
    Mlp,
    Recipe,
    Rows,
    Setup,
    Tensor,
    Trainer,
    TrainingRows,
    Trial,
    check_method,
)
from oodbench.plugin.registry import find, names

TREES = {"hist_gb", "xgboost", "lightgbm", "catboost"}  # test_trees.py
REFUSED = {
    *("mixup", "lisa", "marginal_dro"),  # pairs of rows
    *("subsample", "dwr", "srdo", "kerhrm", "icp"),
    *("realmlp", "tabm", "tabicl"),  # their libraries know no weights
}
TAKING = sorted(name for name in names("method") if find("method", name).takes_weights and name not in TREES)
TIMES = np.tile([1, 2, 3, 2], 10)  # of 40 rows: 80 in all, of which a tenth or a fifth is a whole number
UNBIASED = {"coral", "ib_erm", "ib_irm", "rdm"}  # n - 1 rows of n: a heavy row is one observation, not several


def repeated(rows: TrainingRows) -> TrainingRows:
    environment = None if rows.environment is None else rows.environment.repeat(TIMES)
    return TrainingRows(
        rows.x.repeat(TIMES, 0), rows.y.repeat(TIMES), rows.task, rows.classes, environment, invariant=rows.invariant
    )


def outputs(method: Method, rows: TrainingRows, model: Any) -> np.ndarray:
    hparams = {name: dimension.default for name, dimension in method.search_space().items()}
    hparams |= {"alpha0": 0.4} if "alpha0" in hparams else {}  # more than the single worst row
    setup = Setup(model, Recipe(steps=10))
    (fitted,) = method.fit_pack({0: rows}, [Trial(0, hparams, 0, 1)], Trainer(setup))
    return np.asarray(fitted.outputs(X))  # type: ignore[attr-defined]


X = random_rows(5, 50).x


def test_every_method_takes_weights_or_is_refused() -> None:
    built_in = {name for name in names("method") if find("method", name).__module__.startswith("oodbench_methods.")}
    assert built_in & {*TAKING, *TREES} == built_in - REFUSED


@pytest.mark.parametrize("name", TAKING)
def test_a_row_of_weight_three_is_three_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method = find("method", name)()
    classes = 0 if "regression" in method.tasks else 2
    plain = random_rows(3, len(TIMES), classes=classes)
    plain = TrainingRows(plain.x, plain.y, plain.task, 2, plain.environment, invariant=(0, 1))
    some = np.arange(len(TIMES)) % 4 == 1
    of_rows = {len(some): some, TIMES.sum(): some.repeat(TIMES)}  # the same rows by chance, by how many there are
    monkeypatch.setattr("oodbench.kit.parts.hold_out", lambda train, share, entropy: of_rows[len(train)])
    monkeypatch.setattr(
        "oodbench_methods.hrm.random_labels",
        lambda rows, clusters: torch.tensor(of_rows[rows.y.shape[-1]]).long().unsqueeze(0),
    )
    model = Linear() if name in ("hrm", "wasserstein_dro") else Mlp(width=(4,))
    weighted, several, alike = (
        outputs(method, rows, model) for rows in (plain.weighted(TIMES.astype(float)), repeated(plain), plain)
    )
    tolerance = 0.05 if name in UNBIASED else 2e-3
    gap, other = np.abs(weighted - several).max(), np.abs(weighted - alike).max()
    assert gap < tolerance * np.std(several) + 1e-6
    assert other > 5 * gap


class LooksAway(LossMethod):
    def loss(self, rows: Rows, hp: Any) -> Tensor:
        return rows.losses.mean(-1)


def test_a_method_that_ignores_weights_does_not_pass_the_check() -> None:
    with pytest.raises(AssertionError, match="weights of rows change nothing: use rows.risk"):
        check_method(LooksAway)


def test_a_pack_of_ones_own_must_say_that_it_takes_weights() -> None:
    class Stages(LossMethod):
        def fit_pack(self, train: Any, trials: Any, trainer: Any) -> Any:
            return super().fit_pack(train, trials, trainer)

    assert LossMethod.takes_weights
    assert not Stages.takes_weights
