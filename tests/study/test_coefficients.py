"""Errors of coefficients, from the dataset's truth to the board."""

from __future__ import annotations

import numpy as np
import pytest

from concluding import concluded, planned
from oodbench import Environment
from oodbench.board.metrics import summarize
from oodbench_datasets.irm_sem import IrmSem

TINY = {"rows": 200}


def test_of_least_squares() -> None:
    study = planned("ridge", "irm_sem", settings=TINY, seeds=2, trials=2)
    outcome = concluded(study)
    assert outcome.results is not None
    found = summarize(outcome.results, "regression")
    data = IrmSem(rows=200)
    for seed in (0, 1):
        pooled = Environment.pooled("all", data.train(seed))
        x = np.column_stack([pooled.x, np.ones(len(pooled))])
        gaps = np.linalg.lstsq(x, pooled.y)[0][:-1] - data.coefficients(seed)
        assert found.loc[seed, "causal_error"] == pytest.approx(np.square(gaps[:5]).mean(), rel=0.1)
        assert found.loc[seed, "noncausal_error"] == pytest.approx(np.square(gaps[5:]).mean(), rel=0.1)


def test_scrambled_columns_are_all_causal() -> None:
    study = planned("ridge", "irm_sem", settings={**TINY, "scrambled": True}, seeds=1, trials=1)
    results = concluded(study).results
    assert results is not None
    found = summarize(results, "regression", ["noncausal_error"])
    assert found["causal_error"].notna().all()
    assert found["noncausal_error"].isna().all()


def test_a_model_that_is_not_linear_has_none() -> None:
    study = planned("hist_gb", "irm_sem", settings=TINY, seeds=1, trials=1)
    results = concluded(study).results
    assert results is not None
    assert "causal_error" not in summarize(results, "regression")
    assert summarize(results, "regression", ["causal_error"])["causal_error"].isna().all()
