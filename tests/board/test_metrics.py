from __future__ import annotations

import numpy as np
import pandas as pd

from oodbench.board.metrics import summarize


def test_summaries_over_environments() -> None:
    rows = [
        (0, "test", "a", 1.0),
        (0, "test", "b", 3.0),
        (1, "test", "a", 2.0),
        (1, "test", "b", 2.0),
        (0, "validation", "a", 9.0),
    ]
    results = pd.DataFrame(rows, columns=["seed", "part", "environment", "error"]).assign(chosen=True)
    other = results.assign(chosen=False, error=100.0)
    summary = summarize(pd.concat([results, other]), "regression")
    assert summary["mean_error"].tolist() == [2.0, 2.0]
    assert np.allclose(summary["std_error"], [np.sqrt(2), 0.0])
    assert summary["max_error"].tolist() == [3.0, 2.0]


def test_train_accuracy_counts_rows_not_environments() -> None:
    rows = [
        (0, "train", 100, 0.9, 0.5, 0.1),
        (0, "train", 300, 0.5, 0.5, 0.5),
        (0, "test", 10, 0.4, 0.3, 0.6),
        (0, "test", 10, 0.6, 0.7, 0.4),
    ]
    results = pd.DataFrame(rows, columns=["seed", "part", "rows", "accuracy", "f1", "error"]).assign(chosen=True)
    summary = summarize(results, "classification").iloc[0]
    assert np.isclose(summary["train_accuracy"], 0.6)
    assert np.isclose(summary["mean_accuracy"], 0.5)
    assert (summary["mean_f1"], summary["worst_f1"]) == (0.5, 0.3)
