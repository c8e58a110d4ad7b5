"""A leaderboard in a format that programs and papers take: Markdown, CSV, JSON or LaTeX."""

from __future__ import annotations

import json

from oodbench.board.leaderboard import Leaderboard
from oodbench.errors import UnknownName
from oodbench.report.latex import latex_table
from oodbench.report.tables import markdown_report
from oodbench.texts import as_csv

FORMATS = ("table", "md", "csv", "json", "latex")


def render(board: Leaderboard, format: str, ledger: bool = False) -> str:
    """Text in one of the formats that programs and papers take."""
    if format == "md":
        return markdown_report(board, ledger)
    if format == "csv":
        return as_csv(board.frame(ledger)).rstrip("\n")
    if format == "json":
        return json.dumps(board.as_dict(), indent=2)
    if format == "latex":
        return latex_table([board])
    raise UnknownName("format", format, FORMATS)
