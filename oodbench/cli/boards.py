"""oodbench leaderboard, ui: what the record has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oodbench.api.boards import BoardOptions
from oodbench.api.suites import SuiteBoardOptions
from oodbench.cli.options import Given, spelled, with_options
from oodbench.cli.terminal import (
    DirectoryOption,
    JsonOption,
    OutputOption,
    SetOption,
    SuiteOption,
    app,
    errors,
    output,
    print_board,
    refuse,
    show_suite,
)
from oodbench.errors import UserError
from oodbench.settings.fields import split_assignments
from oodbench.study.directory import DIRECTORY
from oodbench.texts import printable

if TYPE_CHECKING:
    from oodbench.board.leaderboard import Leaderboard


@app.command()
@with_options(SuiteBoardOptions, BoardOptions)
def leaderboard(
    given: Given,
    dataset: Annotated[str | None, typer.Argument(help="A dataset, unless --suite is given.")] = None,
    ledger: Annotated[
        bool, typer.Option("--ledger", help="Add what each study spent: trainings, gradient steps, rows, seconds.")
    ] = False,
    format: Annotated[str, typer.Option(help="table, md, csv, json, latex, or html: a page.")] = "table",
    cells: Annotated[
        Path | None, typer.Option("--cells", help="A CSV file for every seed and environment, for `oodbench compare`.")
    ] = None,
    suite: SuiteOption = None,
    folder: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile the leaderboard of a dataset, or the boards of a suite, from the record.

    Of each method the newest study counts, or the newest with so many --trials and --seeds and that --selector.
    Studies with unequal budgets, data or choices are not ranked together, unless --mixed.

    --against METHOD replaces the tiers: it tells which methods are better or worse than that one.

    --metric and --rank-by take the metrics that `oodbench list` shows, and error, accuracy and f1, each as mean_NAME,
    worst_NAME or std_NAME over the test environments (the worst error is max_error).

    A suite's studies are found by what they are: give the --trials, --seeds and so on of the run, if it had any.

    Example: [bold]oodbench leaderboard selection_bias --set r1=1.5 --format html -o page[/bold]
    """
    from oodbench.report.formats import FORMATS

    format = "json" if as_json else format
    if format not in (*FORMATS, "html"):
        raise UserError(f"there is no format {format!r}.\nKnown: {', '.join(FORMATS)}, html.")
    if format == "html" and folder is None:
        raise UserError("--format html writes a page into a folder.\nName one with --output.")
    if suite is not None:
        refuse({"--ledger": ledger}, "does not go with --suite", "Use --json, which has it.")
        by_hand = {"--set": given.get("settings"), "--cells": cells, "a dataset as argument": dataset}
        refuse(by_hand, "does not go with --suite", "Narrow with --dataset.")
        text_only = {f"--format {format}": format in ("md", "csv", "latex"), "--over": given.get("over")}
        text_only |= {f"--{name.replace('_', '-')}": given.get(name) for name in ("against", "rank_by", "weights")}
        text_only |= {"--metric": given.get("metrics"), "--price": given.get("price")}
        refuse(text_only, "does not go with --suite", "Write files with --output.")
        _show_suite(suite, given, format, folder)
        return
    for_suites = {name for name in given if name not in BoardOptions.__dataclass_fields__}
    refuse(spelled(SuiteBoardOptions, for_suites), "is for suites", "Name one with --suite.")
    if dataset is None:
        raise UserError("name a dataset, or a suite with --suite.\n`oodbench list` shows what there is.")
    from oodbench.api.boards import leaderboard as compile_board

    board = compile_board(dataset, **given)
    if cells is not None:
        _write_cells(board, cells)
    _show(board, format, folder, ledger)


def _show_suite(suite: str, given: Given, format: str, folder: Path | None) -> None:
    from oodbench.api.suites import suite_leaderboards

    of_suite = {name: value for name, value in given.items() if name in SuiteBoardOptions.__dataclass_fields__}
    result = suite_leaderboards(suite, **of_suite)
    if format == "html" and folder is not None:
        _say_written(result.write_page(folder))
    else:
        show_suite(result, folder, format == "json")


def _write_cells(board: Leaderboard, path: Path) -> None:
    from oodbench.board.cells import scores_of, write_cells

    try:
        path.write_text(write_cells(scores_of([board])), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.\nName a file in a folder.") from None


def _show(board: Leaderboard, format: str, folder: Path | None, ledger: bool) -> None:
    from oodbench.api.boards import write_page
    from oodbench.report.formats import render

    if format == "html" and folder is not None:
        _say_written(write_page(board, folder))
        return
    if format == "table":
        print_board(board, ledger)
    else:
        print(printable(render(board, format, ledger)))
    if folder is not None:
        from oodbench.report.folder import write_boards

        text = f"wrote {len(write_boards([board], folder))} files into {folder}"
        errors().print(text, markup=False, highlight=False, soft_wrap=True)


def _say_written(path: Path) -> None:
    output().print(f"wrote {path}", highlight=False, soft_wrap=True)


@app.command()
def ui(
    dataset: Annotated[str | None, typer.Argument(help="Open at this dataset's runs.")] = None,
    set_: SetOption = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.")] = 5000,
    directory: DirectoryOption = DIRECTORY,
) -> None:
    """Start the MLflow page of the embedded record on 127.0.0.1, and print the address of the runs.

    Example: [bold]oodbench ui selection_bias[/bold]
    """
    from oodbench.record.server import serve

    serve(dataset, split_assignments(set_ or [], "--set"), port, directory, errors())
