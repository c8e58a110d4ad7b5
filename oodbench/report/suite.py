"""The boards of a suite as files and in the terminal. The same record gives the same bytes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.board.cells import ENDING, scores_of, write_cells
from oodbench.report.columns import title_of
from oodbench.report.drawing import as_bytes, style
from oodbench.report.folder import write_texts
from oodbench.report.latex import latex_table
from oodbench.report.page import Chapter, write_chapters
from oodbench.report.sweep import CHOSEN, SWEEP, sweep_files
from oodbench.report.tables import legend, markdown_table, notes, rich_table
from oodbench.report.text import ABSENT, cell_text, line
from oodbench.settings.space import fixed_text
from oodbench.texts import as_csv, markdown

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from oodbench.suite.results import BoardResult, SuiteBoards

PAGE = "page"


def write_files(result: SuiteBoards, folder: Path) -> list[Path]:
    """Board by board its Markdown, CSV, scores per seed and environment, and LaTeX or figure; a page; the index."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for board in result.boards:
        name = board.board.name
        figures = _write_figures(board, folder / name) if board.board.figures else []
        shown = [path.relative_to(folder) for path in figures]
        texts = {f"{name}.md": _markdown(board, shown), f"{name}.csv": as_csv(_frame(board))}
        texts[f"{name}{ENDING}"] = write_cells(scores_of(board.leaderboards))
        texts |= sweep_files(name, board.leaderboards)
        if board.board.curve is None:
            texts[f"{name}.tex"] = latex_table(board.leaderboards, board.board.title) + "\n"
        else:
            from oodbench.report.curve import draw_curve

            with style():
                texts[f"{name}.svg"] = as_bytes(draw_curve(board), "svg").decode()
        for file, text in texts.items():
            written.append(folder / file)
            written[-1].write_text(text, encoding="utf-8")
        written += figures
    written.append(_write_page(result, folder / PAGE, "../"))
    written.append(folder / "README.md")
    written[-1].write_text(_index(result), encoding="utf-8")
    return written


def write_suite_page(result: SuiteBoards, folder: str | Path) -> Path:
    """One page, index.html, with all boards, and the files that it links."""
    for board in result.boards:
        write_texts(folder, sweep_files(board.board.name, board.leaderboards))
    return _write_page(result, folder, "")


def _write_page(result: SuiteBoards, folder: str | Path, beside: str) -> Path:
    chapters = [
        Chapter(
            board.board.title,
            board.leaderboards,
            board if board.board.curve else None,
            tuple(f"{beside}{board.board.name}{ending}" for ending in (CHOSEN, SWEEP)),
        )
        for board in result.boards
    ]
    about = [result.suite.about.strip(), f"Mode {result.mode.name}: {result.mode.about.strip()}"]
    return write_chapters(folder, result.suite.title, chapters, about, suite_command("run", result))


def _write_figures(board: BoardResult, folder: Path) -> list[Path]:
    """The test environments of every setting of the board that has results."""
    from oodbench.report.figures import write_figures

    written = []
    for number, (leaderboard, studies) in enumerate(zip(board.leaderboards, board.concluded, strict=True), start=1):
        if any(study.results is not None for study in studies):
            own = folder / str(number) if len(board.leaderboards) > 1 else folder
            written += write_figures(leaderboard.dataset_id, studies, own)
    return written


def print_boards(boards: Sequence[BoardResult], console: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    for board in boards:
        console.print(f"[bold]{escape(board.board.title)}[/bold]", highlight=False)
        if board.board.curve is None:
            for leaderboard in board.leaderboards:
                console.print(rich_table(leaderboard))
        else:
            titles, rows = _curve_table(board)
            table = Table(title=escape(board.leaderboards[0].dataset_id), title_justify="left")
            for title in titles:
                table.add_column(title, justify="right", no_wrap=True)
            for row in rows:
                table.add_row(*row)
            console.print(table)
        for note in _notes(board):
            console.print(note, markup=False, highlight=False, soft_wrap=True)


def _markdown(board: BoardResult, figures: list[Path]) -> str:
    title = markdown(board.board.title)
    lines = [f"# {title}", ""]
    if board.board.curve is None:
        for leaderboard in board.leaderboards:
            lines += [markdown_table(leaderboard), ""]
        lines.append(max((legend(leaderboard) for leaderboard in board.leaderboards), key=len))
        for figure in figures:
            lines += ["", f"![{figure.stem}]({figure.as_posix()})"]
    else:
        titles, rows = _curve_table(board)
        lines += [f"**{markdown(board.leaderboards[0].dataset_id)}**", "", f"![{title}]({board.board.name}.svg)", ""]
        lines += [line(list(map(markdown, row))) for row in (titles, ["---:"] * len(titles), *rows)] + [""]
        lines.append(
            f"value ± spread (sample std over seeds, the band of the figure); {_budget(board)} trials × seeds."
        )
    return "\n".join([*lines, *(f"\n{markdown(note)}" for note in _notes(board))]) + "\n"


def _notes(board: BoardResult) -> list[str]:
    """Why cells are empty."""
    return [f"{leaderboard.dataset_id}: {note}" for leaderboard in board.leaderboards for note in notes(leaderboard)]


def _curve_table(board: BoardResult) -> tuple[list[str], list[list[str]]]:
    """A row per value of the hyper-parameter, a column per method and metric."""
    curve, metrics, scaled = board.board.curve, board.leaderboards[0].metrics, board.leaderboards[0].scaled
    assert curve is not None
    cells = {(point.method, point.at): point.cells for point in board.points}
    titles = [f"{method} {title_of(metric, scaled)}" for method in board.board.methods for metric in metrics]
    rows = [
        [
            fixed_text(at),
            *(cell_text(cells[method, at][metric]) for method in board.board.methods for metric in metrics),
        ]
        for at in curve.values
    ]
    return [curve.hyper_parameter, *titles], rows


def _frame(board: BoardResult) -> pd.DataFrame:
    """Every leaderboard of the board, one below the other; of a curve, a row per method and value."""
    import pandas as pd

    frames = []
    for leaderboard in board.leaderboards:
        frame = leaderboard.frame()
        frame.insert(0, "dataset_id", leaderboard.dataset_id)
        if board.board.curve is not None:
            frame = frame[frame["method"].isin([row.label for row in leaderboard.rows])].reset_index(drop=True)
            frame["method"] = [point.method for point in board.points]
            frame.insert(2, board.board.curve.hyper_parameter, [point.at for point in board.points])
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _index(result: SuiteBoards) -> str:
    command = f"{suite_command('leaderboard', result)} --output FOLDER"
    suite, mode = result.suite, result.mode
    lines = [f"# {markdown(suite.title)}", "", suite.about.strip(), ""]
    lines += [f"Mode **{mode.name}**: {mode.about.strip()}", ""]
    lines += [line(["board", "dataset settings", "studies", "trials × seeds", "concluded", "files"]), line(["---"] * 6)]
    for board in result.boards:
        name = board.board.name
        last = ".svg" if board.board.curve else ".tex"
        files = [name + ending for ending in (".md", ".csv", ENDING, CHOSEN, SWEEP, last)]
        asked = sum(len(leaderboard.rows) for leaderboard in board.leaderboards)
        done = sum(study.results is not None for study in board.studies)
        lines.append(
            line(
                [
                    markdown(board.board.title),
                    "; ".join(markdown(leaderboard.dataset_id) for leaderboard in board.leaderboards),
                    f"{done} of {asked}" if done < asked else str(done),
                    _budget(board),
                    _span([study.record.provenance.day for study in board.studies]),
                    ", ".join(f"[{file}]({file})" for file in files),
                ]
            )
        )
    made = [study.record.provenance for board in result.boards for study in board.studies]
    versions = sorted({", ".join(f"{name} {version}" for name, version in each.versions.items()) for each in made})
    page = f"[{PAGE}/index.html]({PAGE}/index.html)"
    lines += ["", f"All boards on one page, with figures, ledger and provenance: {page}."]
    lines += ["", *(f"Versions: {text}." for text in versions)]
    lines += ["", "Compiled from the recorded runs with", "", f"    {command}"]
    return "\n".join(lines) + "\n"


def suite_command(command: str, result: SuiteBoards) -> str:
    """What to type for these very studies."""
    options = [f"--suite {result.suite.name}", f"--mode {result.mode.name}", shlex.join(result.overrides.as_words())]
    return " ".join(filter(None, ["oodbench", command, *options]))


def _budget(board: BoardResult) -> str:
    records = [study.record for study in board.studies]
    trials, seeds = [record.ledger.trials for record in records], [record.budget.seeds for record in records]
    return f"{_span(trials)} × {_span(seeds)}"


def _span(values: list[str] | list[int]) -> str:
    """The value, or the first and the last."""
    return " to ".join(str(value) for value in dict.fromkeys([min(values), max(values)])) if values else ABSENT
