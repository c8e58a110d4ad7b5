"""oodbench leaderboard, ui: what the record has."""

from __future__ import annotations

from typing import Annotated

import typer

from oodbench.commands.terminal import (
    DIRECTORY,
    DirectoryOption,
    JsonOption,
    SetOption,
    TrackingOption,
    app,
    errors,
    print_board,
)
from oodbench.errors import UserError
from oodbench.settings import split_assignments


@app.command()
def leaderboard(
    dataset: Annotated[str, typer.Argument(help="A dataset.")],
    set_: SetOption = None,
    stability: Annotated[
        bool, typer.Option("--stability", help="Add how stable the chosen models are among sub-populations.")
    ] = False,
    format: Annotated[str, typer.Option(help="table, md, csv or json.")] = "table",
    tracking_uri: TrackingOption = None,
    directory: DirectoryOption = DIRECTORY,
    as_json: JsonOption = False,
) -> None:
    """Compile the leaderboard of a dataset setting from the record.

    Example: [bold]oodbench leaderboard selection_bias --set r1=1.5 --format md[/bold]
    """
    from oodbench.benchmark import leaderboard as compile_board
    from oodbench.report.tables import FORMATS, render

    format = "json" if as_json else format
    if format not in FORMATS:
        raise UserError(f"there is no format {format!r}.\nKnown: {', '.join(FORMATS)}.")
    settings = split_assignments(set_ or [], "--set")
    board = compile_board(
        dataset, settings=settings, stability=stability, tracking_uri=tracking_uri, directory=directory
    )
    if format == "table":
        print_board(board)
    else:
        print(render(board, format))


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
    from oodbench.ui import serve

    serve(dataset, split_assignments(set_ or [], "--set"), port, directory, errors())
