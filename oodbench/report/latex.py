"""Leaderboards as a LaTeX table for a paper: booktabs, dataset settings beside each other, the best in bold."""

from __future__ import annotations

from collections.abc import Sequence

from oodbench.board import Cell, Leaderboard, Row
from oodbench.report.tables import TITLES, has_interval, interval_text, legend, notes

NEEDS = "% needs \\usepackage{booktabs} and \\usepackage{graphicx}"
ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "×": r"$\times$", "≈": r"$\approx$", "–": "--", "✓": r"$\surd$", "✗": r"$\times$",
}  # fmt: skip


def latex_table(boards: Sequence[Leaderboard], caption: str = "") -> str:
    """One table: a row per method, a group of columns per board. The boards have the same methods and metrics."""
    labels = [row.label for row in boards[0].rows]
    columns = [_titles(board) for board in boards]
    rows = [{row.label: row for row in board.rows} for board in boards]
    wide = len(boards) > 1
    lines = [NEEDS, r"\begin{table*}[htbp]" if wide else r"\begin{table}[htbp]", r"  \centering"]
    lines += [f"  \\caption{{{escape(caption or boards[0].setting)}}}"]
    lines += [r"  \resizebox{\textwidth}{!}{%" if wide or len(columns[0]) > 4 else r"  {%"]
    lines += [f"  \\begin{{tabular}}{{l{''.join('c' * len(titles) for titles in columns)}}}", r"    \toprule"]
    if wide:
        groups = [f"\\multicolumn{{{len(titles)}}}{{c}}{{{escape(_short(board.setting))}}}"
                  for board, titles in zip(boards, columns, strict=True)]  # fmt: skip
        lines += [_line(["", *groups]), "    " + " ".join(_rules([len(titles) for titles in columns]))]
    lines += [_line(["Method", *(title for titles in columns for title in titles)]), r"    \midrule"]
    for label in labels:
        texts = [text for board, mine in zip(boards, rows, strict=True) for text in _texts(board, mine.get(label))]
        lines.append(_line([escape(label), *texts]))
    lines += [r"    \bottomrule", r"  \end{tabular}}", ""]
    below = [max((legend(board) for board in boards), key=len), *(note for board in boards for note in notes(board))]
    lines += [f"  \\par\\smallskip\\footnotesize {escape(' '.join(below).replace(' (★)', ''))}"]
    return "\n".join([*lines, r"\end{table*}" if wide else r"\end{table}"])


def escape(text: str) -> str:
    return "".join(ESCAPED.get(letter, letter) for letter in text)


def _titles(board: Leaderboard) -> list[str]:
    titles = ["Tier"] if board.shows("tier") else []
    for metric in board.metrics:
        titles.append(escape(TITLES[metric][0].upper() + TITLES[metric][1:]))
        if metric == board.metrics[0]:
            titles += [r"95\,\% interval"] if has_interval(board) else []
            titles += ["Over searches"] if board.shows("search_spread") else []
            titles += ["Price"] if board.shows("price") else []
        titles += ["Published"] if board.has_published(metric) else []
    return titles


def _texts(board: Leaderboard, row: Row | None) -> list[str]:
    if row is None:
        return ["--"] * len(_titles(board))
    first = row.cells[board.metrics[0]]
    texts = [str(first.tier or "--")] if board.shows("tier") else []
    for metric in board.metrics:
        cell = row.cells[metric]
        texts.append(_number(cell))
        if metric == board.metrics[0]:
            texts += [escape(interval_text(board, cell))] if has_interval(board) else []
            texts += [_signed(r"\pm", cell.search_spread)] if board.shows("search_spread") else []
            texts += [_signed("", cell.price)] if board.shows("price") else []
        if board.has_published(metric):
            found = cell.published
            texts.append(_value(found.value, found.spread) if found else "--")
    return texts


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


def _rules(widths: Sequence[int]) -> list[str]:
    """A rule below each group of columns."""
    ends = [1 + sum(widths[: place + 1]) for place in range(len(widths))]
    return [f"\\cmidrule(lr){{{end - width + 1}-{end}}}" for end, width in zip(ends, widths, strict=True)]


def _short(setting: str) -> str:
    """The settings without the dataset, which the caption names."""
    return setting.partition(" ")[2] or setting


def _line(cells: Sequence[str]) -> str:
    return "    " + " & ".join(cells) + r" \\"
