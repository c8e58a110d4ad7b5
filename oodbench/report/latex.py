"""Leaderboards as a LaTeX table for a paper: booktabs, a block per dataset setting, the best in bold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oodbench.board.leaderboard import Leaderboard
from oodbench.board.row import Cell, Row
from oodbench.report.columns import Column, columns_of
from oodbench.report.tables import claim_text, legend, notes, within_mark
from oodbench.report.text import interval_text

NONE = "--"
NOT_PRINTED = ("validation", "budget", "information", "failures")
NEEDS = "% needs \\usepackage{booktabs} and \\usepackage{graphicx}"
ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "×": r"$\times$", "≈": r"$\approx$", "–": "--", "✓": r"$\surd$", "✗": r"$\times$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
}  # fmt: skip


def latex_table(boards: Sequence[Leaderboard], caption: str = "") -> str:
    """One table: a row per method, and a block of rows per board. The boards have the same metrics."""
    columns = _columns(boards)
    titles = [_title(column) for column in columns]
    # only a wide table is scaled, for others would be blown up
    scale = r"\resizebox{\textwidth}{!}{%" if len(titles) > 4 else "{%"
    lines = [
        NEEDS,
        r"\begin{table}[htbp]",
        r"  \centering",
        f"  \\caption{{{escape(_unnumbered(caption) or boards[0].dataset_id)}}}",
    ]
    lines += [f"  {scale}", f"  \\begin{{tabular}}{{l{'c' * (len(titles) - 1)}}}", r"    \toprule", _line(titles)]
    for board in boards:
        lines.append(r"    \midrule")
        if len(boards) > 1:
            lines += [_line([f"\\multicolumn{{{len(titles)}}}{{l}}{{\\emph{{{escape(board.dataset_id)}}}}}"])]
        lines += [_line([_text(column, board, row) for column in columns]) for row in board.lines]
    lines += [r"    \bottomrule", r"  \end{tabular}}", ""]
    below = [max((legend(board) for board in boards), key=len).replace(" (★)", "")]
    below += [
        f"{board.dataset_id}: {note}." if len(boards) > 1 else f"{note}." for board in boards for note in notes(board)
    ]
    return "\n".join([*lines, f"  \\par\\smallskip\\footnotesize {escape(' '.join(below))}", r"\end{table}"])


def escape(text: str) -> str:
    return "".join(ESCAPED.get(letter, letter) for letter in text)


def _unnumbered(title: str) -> str:
    """LaTeX numbers tables itself: a title such as "Table 1: regression" would have two numbers."""
    rest = re.sub(r"^Table\s+\d+\s*[:.,]?\s*", "", title)
    return rest[:1].upper() + rest[1:]


def _columns(boards: Sequence[Leaderboard]) -> list[Column]:
    """Without those that a paper does not print."""
    return [column for column in columns_of(boards) if column.content not in NOT_PRINTED]


def _title(column: Column) -> str:
    return escape(column.title[0].upper() + column.title[1:]).replace(r" \%", r"\,\%")


def _text(column: Column, board: Leaderboard, row: Row) -> str:
    if column.content == "method":
        return escape(row.shown_label + " †" * bool(row.unequal))
    cell = row.cells[column.metric]
    match column.content:
        case "tier":
            return claim_text(cell, board.over, NONE)
        case "interval":
            return escape(interval_text(cell.intervals.get(board.over)))
        case "searches":
            return NONE if cell.search_spread is None else rf"$\pm {cell.search_spread:.3f}$"
        case "without_seed":
            return NONE if cell.without_seed is None else f"{cell.without_seed:.3f}"
        case "price":
            return NONE if cell.price is None else f"${cell.price:+.3f}$"
        case "published":
            published = cell.published
            return _number(published.value, published.spread) + escape(within_mark(cell)) if published else NONE
    return _value(cell)


def _value(cell: Cell) -> str:
    if cell.value is None:
        return NONE
    text = _number(cell.value, cell.spread, bold=cell.mark == "best")
    return rf"$\approx$ {text}" if cell.mark == "tied" else text


def _number(value: float, spread: float | None, bold: bool = False) -> str:
    number = f"\\textbf{{{value:.3f}}}" if bold else f"{value:.3f}"
    return number + (f" {{\\scriptsize($\\pm {spread:.3f}$)}}" if spread is not None else "")


def _line(cells: Sequence[str]) -> str:
    return "    " + " & ".join(cells) + r" \\"
