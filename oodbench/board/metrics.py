"""The figures of a leaderboard: results summed up over the environments of a seed. `scoring.py` makes the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.engine.data import Task

SUMMARY = {
    "regression": ("mean_error", "std_error", "max_error"),
    "classification": ("mean_error", "std_error", "max_error", "mean_accuracy", "mean_f1", "worst_f1"),
}
BESIDES: dict[str, tuple[str, ...]] = {"regression": (), "classification": ("train_accuracy",)}
"""What `summarize` gives too, shown where it is asked for."""
STABILITY = ("validation_stability", "test_stability", "max_test_stability", "ods", "max_ods")
MEANS = {"mean_error": "error", "mean_accuracy": "accuracy", "mean_f1": "f1"}
"""Metrics that are means over the test environments, and of what."""
HIGHER_IS_BETTER = frozenset({"mean_accuracy", "train_accuracy", "mean_f1", "worst_f1"})


def summarize(results: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Per seed, of the chosen configuration: mean, std (ddof 1) and max error, mean and worst F1 over the test
    environments, and the accuracy in training.

    The std over a single environment is not a number, and is left so.
    """
    import pandas as pd

    results = results[results["chosen"]]
    test = results[results["part"] == "test"].groupby("seed")
    summary = pd.DataFrame(
        {
            "mean_error": test["error"].mean(),
            "std_error": test["error"].std(ddof=1),
            "max_error": test["error"].max(),
        }
    )
    if task == "classification":
        summary["mean_accuracy"] = test["accuracy"].mean()
        summary["mean_f1"] = test["f1"].mean()
        summary["worst_f1"] = test["f1"].min()
        train = results[results["part"] == "train"]
        right = (train["accuracy"] * train["rows"]).groupby(train["seed"]).sum()
        summary["train_accuracy"] = right / train.groupby("seed")["rows"].sum()
    return summary


def cells_of(results: pd.DataFrame, column: str) -> pd.DataFrame:
    """A score of the chosen configuration on every test environment: a row per seed, a column per environment."""
    test = results[results["chosen"] & (results["part"] == "test")]
    return test.groupby(["seed", "environment"])[column].mean().unstack("environment")


def summarize_stability(results: pd.DataFrame) -> pd.DataFrame:
    """Per seed, of the chosen configuration: distributional stability on the pooled validation rows, its mean and
    maximum over the test environments, and the same of the divergence of test from training (ODS).

    A study from before these were measured has no numbers.
    """
    import pandas as pd

    results = results[results["chosen"]]
    results = results.reindex(columns=results.columns.union(["stability", "ods"]))
    test = results[results["part"] == "test"].groupby("seed")
    return pd.DataFrame(
        {
            "validation_stability": results[results["part"] == "pooled"].groupby("seed")["stability"].mean(),
            "test_stability": test["stability"].mean(),
            "max_test_stability": test["stability"].max(),
            "ods": test["ods"].mean(),
            "max_ods": test["ods"].max(),
        },
        index=results["seed"].unique(),
    )
