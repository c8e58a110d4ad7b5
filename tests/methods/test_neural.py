"""Networks of an optional library, by one table of cases."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from oodbench import Method, TrainingRows, check_method
from oodbench.errors import InvalidSetting, TrainingFailed
from oodbench.kit import EstimatorModel, TabularNetwork
from oodbench_methods.realmlp import RealMLP
from oodbench_methods.tabm import TabM

SMALL: dict[type[Method], dict[str, Any]] = {RealMLP: {"layers": "5x64"}, TabM: {"d_block": 32, "n_blocks": 2}}
METHODS = [
    pytest.param(
        method,
        marks=pytest.mark.skipif(find_spec("pytabkit") is None, reason="pytabkit is an extra, not installed"),
    )
    for method in SMALL
]
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(400, 3)), np.ones(400), RNG.integers(2, size=400)])  # a constant; 0 or 1


def hparams(method: type[Method], **other: Any) -> dict[str, Any]:
    return {name: dimension.default for name, dimension in method.space.items()} | SMALL[method] | other


def shorten(method: type[Method], monkeypatch: pytest.MonkeyPatch, epochs: int) -> None:
    module = import_module(method.__module__)
    monkeypatch.setattr(module, "EPOCHS", epochs)
    monkeypatch.setattr(module, "MEMBERS", 4, raising=False)


@pytest.mark.parametrize("method", METHODS)
def test_conforms(method: type[Method], monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(method, monkeypatch, 2)
    check_method(method)


@pytest.mark.parametrize("method", METHODS)
def test_finds_what_no_linear_model_can(method: type[Method], monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(method, monkeypatch, 60)
    y = np.sign(X[:, 0] * X[:, 1])
    model = method().fit(TrainingRows(X, y, "regression", 2), hparams(method), 1)
    fresh = np.column_stack([RNG.normal(size=(400, 3)), np.ones(400), RNG.integers(2, size=400)])
    assert np.mean((model.predict(fresh) - np.sign(fresh[:, 0] * fresh[:, 1])) ** 2) < 0.5  # the mean has 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("embedding", ["none", "pbld or pwl"])
@pytest.mark.parametrize("classes", [[], [0, 2], [0, 1, 3]])
def test_a_stored_model_says_what_the_library_says(
    method: type[Method], embedding: str, classes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(method, monkeypatch, 20)
    kept: list[Any] = []  # the estimators that are made: the first is trained
    estimator_of = import_module("oodbench.kit.pytabkit")._estimator

    def make(*args: Any) -> Any:
        kept.append(estimator_of(*args))
        return kept[-1]

    monkeypatch.setattr("oodbench.kit.pytabkit._estimator", make)
    bins = np.linspace(-0.5, 0.5, max(0, len(classes) - 1))
    y = np.array(classes)[np.digitize(X[:, 0], bins)] if classes else 3 * X[:, 0] + 7
    rows = TrainingRows(X, y, "classification" if classes else "regression", 4)
    named = embedding if embedding == "none" else "pbld" if method is RealMLP else "pwl"
    model = method().fit(rows, hparams(method, num_emb_type=named), 1)
    assert isinstance(model, EstimatorModel)
    again = EstimatorModel.restore(model.arrays(), model.about())
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.outputs(X), model.outputs(X))
    if classes:
        assert np.mean(model.predict(X) == y) > 0.8
        assert np.array_equal(again.outputs(X)[:, classes], kept[0].predict_proba(X).astype(float))
    else:
        assert np.array_equal(again.predict(X), kept[0].predict(X))


@pytest.mark.parametrize("method", METHODS)
def test_a_stored_network_without_some_of_its_tensors_is_refused(
    method: type[Method], monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(method, monkeypatch, 1)
    rows = TrainingRows(X, 3 * X[:, 0], "regression", 2)
    model = method().fit(rows, hparams(method), 1)
    assert isinstance(model, EstimatorModel)
    network = model.estimator
    weight = next(name for name in network.tensors if name.endswith("weight"))
    del network.tensors[weight]
    with pytest.raises(TrainingFailed, match=f"the stored network has no {weight.removeprefix('network.')}"):
        TabularNetwork.load(network.kind, network.dump()).predict(X)


@pytest.mark.parametrize("method", list(SMALL))
def test_without_the_library_the_command_that_installs_it_is_named(
    method: type[Method], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oodbench.kit.estimators.find_spec", lambda name: None)
    name = method.__name__.lower()
    with pytest.raises(InvalidSetting) as caught:
        method().check(TrainingRows(X, X[:, 0], "regression", 2), hparams(method))
    assert str(caught.value) == (
        f"method '{name}' needs pytabkit, which is not installed.\nInstall it with `pip install 'oodbench[pytabkit]'`."
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_stored_model_names_no_folder_of_pickles_and_no_device(method: type[Method]) -> None:
    estimator_of = import_module("oodbench.kit.pytabkit")._estimator
    stored = estimator_of(method.__name__.lower(), 2, {"tmp_folder": "elsewhere", "device": "cuda", "n_cv": 5})
    assert (stored.tmp_folder, stored.device, stored.n_cv) == (None, "cpu", 1)
