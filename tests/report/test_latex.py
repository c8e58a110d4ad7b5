"""LaTeX tables as text; tests/proofs/latex compiles them."""

from __future__ import annotations

import pytest

from oodbench.board.leaderboard import compile_leaderboard
from oodbench.report.latex import latex_table


@pytest.mark.parametrize(
    ("title", "caption"),
    [
        ("Table 1: regression with selection bias", "Regression with selection bias"),
        ("Table 12, commutes", "Commutes"),
        ("Table 3", "data"),  # nothing is left: the dataset's name, as without a title
        ("", "data"),
        ("Tables turned: a board", "Tables turned: a board"),
    ],
)
def test_latex_numbers_tables_itself(title: str, caption: str) -> None:
    board = compile_leaderboard("data", [], ["erm"])
    assert f"\\caption{{{caption}}}" in latex_table([board], title)
