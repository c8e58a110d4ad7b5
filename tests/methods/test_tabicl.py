"""TabICL. Its real weights are a download; a small network without training shows all but that it predicts well."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oodbench import Option, TrainingRows, check_method
from oodbench.errors import InvalidSetting, TrainingFailed
from oodbench.kit import EstimatorModel, find_weights
from oodbench.kit.tabicl import VARIABLE
from oodbench_methods.tabicl import TabICL

installed = pytest.mark.skipif(find_spec("tabicl") is None, reason="tabicl is an extra, not installed")
HPARAMS: dict[str, Any] = {name: dimension.default for name, dimension in TabICL.space.items()} | {"n_estimators": 2}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
REGRESSION = TrainingRows(X, 3 * X[:, 0] + 7, "regression", 2)


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with weights of the library's format, small and drawn at random."""
    import torch
    from tabicl import TabICLClassifier, TabICLRegressor
    from tabicl._model.tabicl import TabICL as Network

    for made, classes in ((TabICLClassifier, 10), (TabICLRegressor, 0)):
        size = {"embed_dim": 16, "col_num_blocks": 1, "col_nhead": 2, "col_num_inds": 8, "icl_num_blocks": 1}
        config = size | {"max_classes": classes, "row_num_blocks": 1, "row_nhead": 2, "row_num_cls": 2, "icl_nhead": 2}
        torch.manual_seed(0)
        torch.save(
            {"config": config, "state_dict": Network(**config).state_dict()}, tmp_path / made().checkpoint_version
        )
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


@installed
def test_conforms(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TabICL, "space", {**TabICL.space, "n_estimators": Option(2)})
    check_method(TabICL)


@installed
@pytest.mark.parametrize("classes", [[], [0, 2], [0, 1, 3]])
def test_a_stored_model_says_what_the_library_says(weights: Path, classes: list[int]) -> None:
    from tabicl import TabICLClassifier, TabICLRegressor

    bins = np.linspace(-0.5, 0.5, max(0, len(classes) - 1))
    y = np.array(classes)[np.digitize(X[:, 0], bins)] if classes else REGRESSION.y
    model = TabICL().fit(TrainingRows(X, y, "classification" if classes else "regression", 4), HPARAMS, 5)
    assert isinstance(model, EstimatorModel)
    again = EstimatorModel.restore(model.arrays(), model.about())
    assert np.array_equal(again.outputs(X), model.outputs(X))
    settings = {"n_estimators": 2, "random_state": 5, "n_jobs": 1, "device": "cpu"}
    own = TabICLClassifier if classes else TabICLRegressor
    library = own(model_path=find_weights(bool(classes)), **settings).fit(X, y)
    if classes:
        assert np.array_equal(again.outputs(X)[:, classes], library.predict_proba(X).astype(float))
    else:
        assert np.array_equal(again.predict(X), library.predict(X).astype(float))


@installed
def test_other_weights_than_a_predictor_had_are_refused(weights: Path) -> None:
    model = TabICL().fit(REGRESSION, HPARAMS, 5)
    assert isinstance(model, EstimatorModel)
    find_weights(False).write_bytes(b"other")
    with pytest.raises(TrainingFailed, match="are not those of this predictor"):
        EstimatorModel.restore(model.arrays(), model.about()).predict(X)


@installed
def test_without_weights_two_lines_say_where_they_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(InvalidSetting) as caught:
        TabICL().check(REGRESSION, HPARAMS)
    needs, remedy = str(caught.value).splitlines()
    assert needs.startswith("method 'tabicl' needs the weights tabicl-regressor-")
    assert remedy.startswith("Run `hf download jingang/TabICL tabicl-regressor-")
    assert remedy.endswith("or set OODBENCH_TABICL to a folder that has the file.")


def test_without_the_library_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oodbench.kit.estimators.find_spec", lambda name: None)
    with pytest.raises(InvalidSetting, match=r"needs tabicl, .*\nInstall it with `pip install 'oodbench\[tabicl\]'`."):
        TabICL().check(REGRESSION, HPARAMS)


@installed
@pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no folder with the real weights")
def test_finds_what_no_linear_model_can() -> None:
    y = np.sign(X[:, 0] * X[:, 1])
    model = TabICL().fit(TrainingRows(X, y, "regression", 2), HPARAMS, 1)
    fresh = RNG.normal(size=(120, 3))
    assert np.mean((model.predict(fresh) - np.sign(fresh[:, 0] * fresh[:, 1])) ** 2) < 0.5  # the mean has 1
