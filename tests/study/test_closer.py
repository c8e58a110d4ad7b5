"""Selectors that look at every trained model, and a metric of a user's own, from the search to the board."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import oodbench
from oodbench.board.metrics import board_metric

OWN = """
import oodbench

@oodbench.metric("classification", better="higher", needs="probabilities")
def sure(y, probabilities):
    '''Mean probability of the right class.'''
    return probabilities[range(len(y)), y].mean()
"""
SMALL = {"d": 2, "group_rows": 40, "test_rows": 30}


@pytest.mark.parametrize("selector", ["mean:sure", "stability"])
def test_a_choice_by_more_than_scores(
    selector: str, distribution: Callable[..., Path], ray_address: str, tmp_path: Path
) -> None:
    distribution("own-measure", "own_measure", OWN, metrics="sure = own_measure:sure")
    result = oodbench.run(
        "erm", "spurious_correlation", settings=SMALL, trials=3, seeds=2, selector=selector,
        recipe={"steps": 30}, directory=tmp_path, address=ray_address,
    )  # fmt: skip
    assert not result.failures
    (study,) = result.leaderboard().studies
    assert study.results is not None
    validation = study.results[study.results["part"] == "validation"]
    assert study.record.choice is not None
    if selector == "mean:sure":
        risk = (1 - validation["sure"]).groupby([validation["configuration"], validation["seed"]]).mean()
        means = risk.groupby("configuration").mean()
        assert study.record.choice.configuration == means.idxmin()
        assert study.record.choice.scores == pytest.approx(means.to_dict())
    else:
        errors = validation.groupby(["configuration", "seed"])["error"].mean().groupby("configuration").mean()
        assert all(study.record.choice.scores[number] >= error for number, error in enumerate(errors))
    assert {"sure", "auc", "ece"} <= set(study.record.metrics)
    board = oodbench.leaderboard(
        "spurious_correlation",
        settings=SMALL,
        directory=tmp_path,
        metrics=["mean_sure", "mean_auc"],
        rank_by="worst_sure",
    )
    assert board.metrics == ("worst_sure", "mean_sure", "mean_auc")
    assert board_metric("worst_sure").higher_is_better
    worst, mean = (board.rows[0].cells[name].value for name in board.metrics[:2])
    assert worst is not None
    assert mean is not None
    assert 0 < worst <= mean < 1
    assert board.constant is not None
    assert board.constant.cells["mean_auc"].value == 0.5
