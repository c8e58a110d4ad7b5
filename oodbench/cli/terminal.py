"""What the commands share: the application, common options, and the two consoles."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oodbench.api.boards import BoardOptions
from oodbench.board.statistics import OVER, Over
from oodbench.cli.options import typer_option
from oodbench.cli.streams import make_console
from oodbench.errors import UnknownName, UserError
from oodbench.study.directory import DIRECTORY
from oodbench.study.spec import Place, Training

if TYPE_CHECKING:
    from rich.console import Console

    from oodbench.api.suites import SuiteResult
    from oodbench.board.leaderboard import Leaderboard

app = typer.Typer(
    help="Does this out-of-distribution method really help, on my data, against honestly tuned baselines?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

SetOption = Annotated[list[str] | None, typer_option(Training, "settings")]
TrackingOption = Annotated[str | None, typer_option(Place, "tracking_uri")]
DirectoryOption = Annotated[Path, typer_option(Place, "directory")]
OverOption = Annotated[str, typer_option(BoardOptions, "over")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
SuiteOption = Annotated[
    str | None, typer.Option("--suite", help="A suite, by name or by the path of its file; `oodbench list` lists them.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="A folder for the boards as files, with all that was tried, and a page."),
]
FigureFormatOption = Annotated[str, typer.Option("--format", help="svg, png or pdf.")]


def check_over(over: str) -> Over:
    if over not in OVER:
        raise UnknownName("unit for --over", over, OVER)
    return over


def print_board(board: Leaderboard, ledger: bool = False) -> None:
    from oodbench.report.selectors import selectors_table
    from oodbench.report.tables import ledger_table, notes, rich_table

    console = output()
    tables = [rich_table(board), selectors_table(board), ledger_table(board) if ledger else None]
    for table in filter(None, tables):
        if not console.is_terminal:
            widest = console.measure(table, options=console.options.update(width=1000)).maximum
            console.width = max(console.width, widest)
        console.print(table)
    for note in notes(board):
        console.print(note, markup=False, highlight=False, soft_wrap=True)


def show_suite(result: SuiteResult, folder: Path | None, as_json: bool) -> None:
    """The boards of a suite, in the terminal or as JSON, and as files if a folder is named."""
    written = result.write(folder) if folder is not None else []
    if as_json:
        print(json.dumps(result.as_dict(), indent=2))
        return
    from oodbench.report.suite import print_boards

    print_boards(result.boards, output())
    if written:
        text = f"wrote {len(written)} files: {folder}/README.md lists them"
        errors().print(text, markup=False, highlight=False, soft_wrap=True)


def refuse(options: Mapping[str, object], reason: str, remedy: str) -> None:
    """Options that were given, but have no meaning here."""
    given = [name for name, value in options.items() if value]
    if given:
        raise UserError(f"{given[0]} {reason}.\n{remedy}")


@contextlib.contextmanager
def results_only() -> Iterator[None]:
    """Whatever is printed in here goes to standard error: standard output is for results, and plug-ins talk."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def sync_command(directory: Path, destination: str) -> str:
    """What a user types to deliver what is in the outbox."""
    parts = ["oodbench sync"]
    if directory != DIRECTORY:
        parts.append(f"--directory {directory}")
    return " ".join(parts + ([f"--tracking-uri {destination}"] if destination else []))


def output() -> Console:
    console = make_console()
    # a file or pipe has no width: do not cut tables for it
    return console if console.is_terminal else make_console(width=160)


def errors() -> Console:
    return make_console(stderr=True)
