"""Leaderboards as a LaTeX table for a paper: booktabs, a block per dataset setting, the best in bold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oodbench.board.leaderboard import Cell, Leaderboard, Row
from oodbench.report.tables import TITLES, has_interval, interval_text, legend, notes

NEEDS = "% needs \\usepackage{booktabs} and \\usepackage{graphicx}"
ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "×": r"$\times$", "≈": r"$\approx$", "–": "--", "✓": r"$\surd$", "✗": r"$\times$",
    "†": r"$\dagger$",
}  # fmt: skip


def latex_table(boards: Sequence[Leaderboard], caption: str = "") -> str:
    """One table: a row per method, and a block of rows per board. The boards have the same metrics."""
    titles = _titles(boards)
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
        lines += [_line(_texts(boards, board, row)) for row in board.rows]
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


def _titles(boards: Sequence[Leaderboard]) -> list[str]:
    """What any of the boards has."""
    titles = ["Method", *(["Tier"] if _any(boards, "tier") else [])]
    metrics = boards[0].metrics
    for metric in metrics:
        titles.append(escape(TITLES[metric][0].upper() + TITLES[metric][1:]))
        if metric == metrics[0]:
            titles += [r"95\,\% interval"] if any(map(has_interval, boards)) else []
            titles += ["Over searches"] if _any(boards, "search_spread") else []
            titles += ["Price of selection"] if _any(boards, "price") else []
        titles += ["Published"] if any(board.has_published(metric) for board in boards) else []
    return titles


def _texts(boards: Sequence[Leaderboard], board: Leaderboard, row: Row) -> list[str]:
    """Below `_titles`."""
    first = row.cells[board.metrics[0]]
    texts = [escape(row.label + " †" * bool(row.unequal)), *([str(first.tier or "--")] if _any(boards, "tier") else [])]
    for metric in board.metrics:
        cell = row.cells[metric]
        texts.append(_number(cell))
        if metric == board.metrics[0]:
            texts += [escape(interval_text(board, cell))] if any(map(has_interval, boards)) else []
            texts += [_signed(r"\pm", cell.search_spread)] if _any(boards, "search_spread") else []
            texts += [_signed("", cell.price)] if _any(boards, "price") else []
        if any(board.has_published(metric) for board in boards):
            mark = {True: " ✓", False: " ✗", None: ""}[cell.within]
            found = cell.published
            texts.append(_value(found.value, found.spread) + escape(mark) if found else "--")
    return texts


def _any(boards: Sequence[Leaderboard], what: str) -> bool:
    return any(board.shows(what) for board in boards)


def _number(cell: Cell) -> str:
    if cell.value is None:
        return "--"
    text = _value(cell.value, cell.spread, bold=cell.mark == "best")
    return rf"$\approx$ {text}" if cell.mark == "tied" else text


def _value(value: float, spread: float | None, bold: bool = False) -> str:
    number = f"\\textbf{{{value:.3f}}}" if bold else f"{value:.3f}"
    return number + (f" {{\\scriptsize($\\pm {spread:.3f}$)}}" if spread is not None else "")


def _signed(sign: str, value: float | None) -> str:
    return "--" if value is None else f"${sign} {value:.3f}$" if sign else f"${value:+.3f}$"


def _line(cells: Sequence[str]) -> str:
    return "    " + " & ".join(cells) + r" \\"
