"""What the commands share: the application, common options, and the two consoles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    help="Does this out-of-distribution method really help, on my data, against honestly tuned baselines?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the dataset; `oodbench show DATASET` lists them."),
]
TrackingOption = Annotated[
    str | None, typer.Option("--tracking-uri", help="MLflow server to use instead of the embedded database.")
]
DirectoryOption = Annotated[
    Path, typer.Option("--directory", help="Where the embedded record and unfinished work live.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

DIRECTORY = Path(".oodbench")


def print_board(board: Any) -> None:
    from oodbench.report.tables import notes, rich_table

    table, console = rich_table(board), output()
    if not console.is_terminal:
        console.width = max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)
    console.print(table)
    for note in notes(board):
        console.print(note, highlight=False, soft_wrap=True)


def output() -> Console:
    from rich.console import Console

    console = Console()
    # a file or pipe has no width: do not cut tables for it
    return console if console.is_terminal else Console(width=160)


def errors() -> Console:
    from rich.console import Console

    return Console(stderr=True)
