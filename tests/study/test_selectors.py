from __future__ import annotations

import pandas as pd
import pytest

from oodbench.errors import StudyFailed, UnknownName
from oodbench.study.record import Chosen
from oodbench.study.selectors import check_selector
from oodbench.study.selectors import select as select_among


def table(*rows: tuple[int, int, str, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["configuration", "seed", "environment", "error"])


def select(scores: pd.DataFrame, selector: str, seeds: int) -> Chosen:
    return select_among(scores, selector, seeds, [{"rate": number / 10} for number in range(3)])


SCORES = table(
    (0, 0, "a", 1.0), (0, 0, "b", 9.0), (1, 0, "a", 5.5), (1, 0, "b", 5.5), (2, 0, "a", 7.0), (2, 0, "b", 7.0)
)


def test_mean_and_worst_choose_differently() -> None:
    assert select(SCORES, "mean", 1).configuration == 0
    assert select(SCORES, "worst", 1).configuration == 1


def test_scores_are_averaged_over_seeds() -> None:
    scores = table((0, 0, "a", 1.0), (0, 1, "a", 9.0), (1, 0, "a", 4.0), (1, 1, "a", 4.0))
    choice = select(scores, "worst", 2)
    assert (choice.configuration, choice.score, choice.hparams) == (1, 4.0, {"rate": 0.1})


def test_a_configuration_that_failed_on_a_seed_is_never_chosen() -> None:
    scores = table((0, 0, "a", 0.1), (1, 0, "a", 4.0), (1, 1, "a", 4.0))
    assert select(scores, "worst", 2).configuration == 1
    with pytest.raises(StudyFailed, match="no configuration finished on all 2 seeds"):
        select(scores[scores["configuration"] == 0], "worst", 2)


def test_ties_go_to_the_defaults() -> None:
    assert select(table((1, 0, "a", 1.0), (0, 0, "a", 1.0)), "mean", 1).configuration == 0


def test_unknown_selectors() -> None:
    with pytest.raises(UnknownName, match=r"Did you mean 'worst'\?"):
        check_selector("wort")
