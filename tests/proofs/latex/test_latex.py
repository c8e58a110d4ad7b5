"""LaTeX tables compile as they are, and say on paper what the board says. Needs pdflatex and pdftotext."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from oodbench.board.leaderboard import Leaderboard, compile_leaderboard
from oodbench.board.row import Published
from oodbench.report.formats import render
from oodbench.report.latex import latex_table
from oodbench.study.record import ConcludedStudy
from oodbench.study.study import ORACLE
from studies import failed, made_up

pytestmark = [
    pytest.mark.skipif(shutil.which(tool) is None, reason=f"{tool} is not installed")
    for tool in ("pdflatex", "pdftotext", "pdftoppm")
]
DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[margin=2cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\begin{document}
%s
\end{document}
"""


def board(dataset_id: str, shift: float = 0.0) -> Leaderboard:
    rng = np.random.default_rng(3)

    def record(label: str, mean: float, **others: Any) -> ConcludedStudy:
        rows = [
            {"seed": seed, "part": "test", "environment": name, "error": mean + shift + rng.normal(0, 0.1)}
            for seed in range(10)
            for name in "abcdef"
        ]
        results = pd.DataFrame(rows).assign(chosen=True, configuration=0)
        return made_up(label, results, **{"study_id": label, **others})

    broken = failed(record("kerhrm", 1.0), "diverged: 100 % of R&D_rows #1 {x}")
    compiled = compile_leaderboard(
        dataset_id,
        [
            record("erm", 3.0, search_id="e"),
            record("srm_plain & more", 1.3, search_id="s"),
            record("fdro", 1.9, search_id="f"),
            record(f"fdro ({ORACLE})", 1.8, selector="oracle", search_id="f"),
            record("fdro", 2.0, repeat_of="fdro"),
            broken,
        ],
        ["irm (mlp width=20,10)"],
    )
    rows = [
        replace(row, cells=row.cells | {"mean_error": replace(row.cells["mean_error"], published=Published(2.5, 0.1))})
        if row.label == "erm"
        else row
        for row in compiled.rows
    ]
    return replace(compiled, rows=rows)


def compile_document(table: str, folder: Path, name: str) -> str:
    (folder / f"{name}.tex").write_text(DOCUMENT % table, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Overfull \\hbox" not in done.stdout
    subprocess.run(["pdftoppm", "-r", "110", "-png", f"{name}.pdf", name], cwd=folder, check=True, timeout=60)
    text = subprocess.run(["pdftotext", "-layout", f"{name}.pdf", "-"], cwd=folder, capture_output=True, check=True)
    return text.stdout.decode()


def test_one_board(tmp_path: Path) -> None:
    one = board("selection_bias r1=1.9")
    paper = compile_document(render(one, "latex"), tmp_path, "one")
    assert "selection_bias r1=1.9" in paper
    for row in one.rows:
        cell = row.cells["mean_error"]
        (line,) = [
            line for line in paper.splitlines() if line.split()[:1] == row.label.split()[:1] and _fits(line, row.label)
        ]
        if cell.value is not None:
            assert f"{cell.value:.3f}" in line
            assert f"(±{cell.spread:.3f})" in line.replace("± ", "±")
        if cell.tier is not None:
            assert str(cell.tier) in line.split()
    assert "100 % of R&D_rows #1 {x}" in " ".join(paper.split())
    assert "\\textbf{1." in render(one, "latex")


def _fits(line: str, label: str) -> bool:
    return " ".join(line.split()).startswith(label) and (ORACLE in label) == (ORACLE in line)


def test_a_block_of_rows_for_each_of_several_boards(tmp_path: Path) -> None:
    both = [board("selection_bias r1=1.5"), board("selection_bias r1=1.9", 0.2)]
    paper = compile_document(latex_table(both, "Both settings"), tmp_path, "both")
    assert "Both settings" in paper
    lines = [line for line in paper.splitlines() if line.strip().startswith("erm")]
    for one, line in zip(both, lines, strict=True):
        value = next(row for row in one.rows if row.label == "erm").cells["mean_error"].value
        assert f"{value:.3f}" in line
    assert paper.index("selection_bias r1=1.5") < paper.index(lines[0]) < paper.index("selection_bias r1=1.9")
